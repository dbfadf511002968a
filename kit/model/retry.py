"""When to try a model call again, and after how long."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from kit.model.errors import ModelError, ModelErrorReason

_FIRST_BACKOFF = 0.5
_LONGEST_BACKOFF = 4.0
_SECONDS = re.compile(r"\s*[0-9]{1,9}(?:\.[0-9]{1,9})?\s*")


@dataclass(frozen=True)
class RetryPolicy:
    """At most `max_attempts` tries in all; a server that asks to wait more than `max_wait` seconds isn't waited for."""

    max_attempts: int
    max_wait: float
    random: Callable[[], float]

    def wait(self, failures: Sequence[ModelError]) -> float | None:
        """Seconds to wait before the next try, after these failures, the last one last; None when there is no next."""
        last = failures[-1]
        if len(failures) >= self.max_attempts or not _may_pass(failures):
            return None
        if last.retry_after is None:
            return self._backoff(len(failures))
        return last.retry_after if last.retry_after <= self.max_wait else None

    def _backoff(self, failed: int) -> float:
        # Jitter takes away up to half, so that clients that failed together don't come back together.
        longest = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0 ** (failed - 1))
        return longest * (1 - self.random() / 2)


def _may_pass(failures: Sequence[ModelError]) -> bool:
    last = failures[-1]
    match last.reason:
        case ModelErrorReason.REFUSED:
            return False
        case ModelErrorReason.TIMEOUT:
            # The caller has waited its full time already.
            return False
        case ModelErrorReason.MALFORMED:
            return sum(failure.reason is ModelErrorReason.MALFORMED for failure in failures) == 1
        case ModelErrorReason.UNAVAILABLE:
            return last.status != 409
        case ModelErrorReason.RATE_LIMITED | ModelErrorReason.INTERRUPTED:
            return True


def reason_of(status: int) -> ModelErrorReason:
    """The reason an HTTP status other than 2xx stands for."""
    if status == 429:
        return ModelErrorReason.RATE_LIMITED
    if status in (408, 409, 425) or status >= 500:
        return ModelErrorReason.UNAVAILABLE
    return ModelErrorReason.REFUSED


def parse_retry_after(value: str | None, now: float) -> float | None:
    """The seconds of a Retry-After header (RFC 9110, 10.2.3): a number, or an HTTP date less `now` (Unix seconds).

    None where there is no header, or it is negative, past, or can't be read.
    """
    if value is None:
        return None
    if _SECONDS.fullmatch(value):
        return float(value)
    try:
        seconds = parsedate_to_datetime(value).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return seconds if seconds >= 0 and math.isfinite(seconds) else None
