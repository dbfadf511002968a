"""The one error of a model call."""

from enum import StrEnum

from kit.model.chat import Usage


class ModelErrorReason(StrEnum):
    """Why a model call failed; callers branch on this."""

    RATE_LIMITED = "rate_limited"
    """The server answered 429."""
    UNAVAILABLE = "unavailable"
    """No connection, no TLS, or 408, 409, 425, 5xx."""
    TIMEOUT = "timeout"
    """No answer, or no further byte of it, in time."""
    REFUSED = "refused"
    """Any other status: the same request would be refused again."""
    MALFORMED = "malformed"
    """A 200 that holds no answer: an error body, broken JSON, no choice, no text."""
    INTERRUPTED = "interrupted"
    """The connection or the stream ended before the answer did."""


class ModelError(Exception):
    """A model call that failed for good, after the tries it was allowed.

    The message names what happened and never quotes the prompt, the answer or the key.

    reason       why.
    retryable    the same request may succeed later or at another model.
    retry_after  seconds the server asked to wait, where it did.
    status       the HTTP status, where there was one.
    attempts     tries made, this one included.
    usage        what the failed answer used as far as it is known; None where nothing was generated.
    """

    def __init__(
        self,
        reason: ModelErrorReason,
        message: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        attempts: int = 1,
        usage: Usage | None = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retryable = reason is not ModelErrorReason.REFUSED
        self.retry_after = retry_after
        self.status = status
        self.attempts = attempts
        self.usage = usage


class UnusableUrl(ValueError):
    """The base URL of a model server can't be used; the text says why and doesn't quote it."""


class UnusableKey(ValueError):
    """The key of a model server can't be used; the text says why and doesn't quote it."""
