"""Errors: how a refusal travels from the domain of one service to the caller in another.

The domain raises its own named exceptions. A service's table says which code and reason each has. The server's
interceptor writes them as google.rpc.Status; the channel reads them back as RemoteError.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

DOMAIN = "lintello"
STATUS_KEY = "grpc-status-details-bin"


class InvalidField(Exception):
    """A field of a request is missing or out of bounds. `problem` says what is allowed and never quotes the value."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class TooLarge(InvalidField):
    """A text is larger than its limit."""


class ShuttingDown(Exception):
    """This process takes no new work."""


@dataclass(frozen=True)
class Refusal:
    """What the outside sees of an exception: a canonical code and a reason to branch on."""

    code: grpc.StatusCode
    reason: str
    message: str | None = None
    """Said instead of the exception's own text; None: the exception's text is fit for the outside."""


ErrorTable = Mapping[type[Exception], Refusal]

COMMON: ErrorTable = {
    InvalidField: Refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
    TooLarge: Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_LARGE"),
    ShuttingDown: Refusal(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN", "shutting down"),
}


@dataclass(eq=False)
class RemoteError(Exception):
    """A call to another service was refused or failed."""

    code: grpc.StatusCode
    reason: str
    message: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Field name → what is wrong with it."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    """Seconds after which a retry may help."""

    def __str__(self) -> str:
        return f"{self.code.name} {self.reason}"


def refusal_for(error: Exception, table: ErrorTable) -> Refusal | None:
    """The table's row for an exception or the nearest of its classes; None when it has none."""
    for kind in type(error).__mro__:
        row = table.get(kind) or COMMON.get(kind)
        if row is not None:
            return row
    return None


def to_status(error: Exception, row: Refusal) -> status_pb2.Status:
    """Write an exception as google.rpc.Status with ErrorInfo and, where it has fields, BadRequest."""
    fields: Mapping[str, str] = {}
    metadata: Mapping[str, str] = getattr(error, "metadata", {})
    if isinstance(error, InvalidField):
        fields = {error.name: error.problem}
    elif isinstance(error, RemoteError):
        fields = error.fields
    message = row.message if row.message is not None else str(error)
    details = [_pack(error_details_pb2.ErrorInfo(reason=row.reason, domain=DOMAIN, metadata=metadata))]
    if fields:
        violations = [
            error_details_pb2.BadRequest.FieldViolation(field=name, description=problem)
            for name, problem in fields.items()
        ]
        details.append(_pack(error_details_pb2.BadRequest(field_violations=violations)))
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None:
        wait = duration_pb2.Duration()
        wait.FromMilliseconds(int(retry_after * 1000))
        details.append(_pack(error_details_pb2.RetryInfo(retry_delay=wait)))
    return status_pb2.Status(code=row.code.value[0], message=message, details=details)


def from_rpc(error: grpc.aio.AioRpcError) -> RemoteError:
    """Read what a call failed with; without details of ours the code's own name is the reason."""
    code = error.code()
    reason, message = code.name, error.details() or ""
    fields: dict[str, str] = {}
    metadata: dict[str, str] = {}
    retry_after: float | None = None
    for key, value in error.trailing_metadata() or ():
        if key != STATUS_KEY or not isinstance(value, bytes):
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info, bad, wait = (
                error_details_pb2.ErrorInfo(),
                error_details_pb2.BadRequest(),
                error_details_pb2.RetryInfo(),
            )
            if detail.Unpack(info) and info.domain == DOMAIN:
                reason, metadata = info.reason, dict(info.metadata)
            elif detail.Unpack(bad):
                fields = {violation.field: violation.description for violation in bad.field_violations}
            elif detail.Unpack(wait):
                retry_after = wait.retry_delay.ToMilliseconds() / 1000
    return RemoteError(code, reason, message, fields, metadata, retry_after)


def _pack(message: object) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)  # type: ignore[arg-type]
    return packed
