"""Between the wire's messages and the domain's types. What a request holds is checked here, each field by its name."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import run_pb2
from lintello.quota.v1 import quota_pb2 as pb

from kit.errors import InvalidField
from kit.ids import checked_id
from kit.text import clean
from services.quota.leases import Admission, Lease
from services.quota.usage import Ending, ModelUsage, RunUsage

MAX_MODELS = 100
MAX_NAME = 200

_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")
_ENDINGS: Mapping[int, Ending] = {
    run_pb2.RUN_STATUS_DONE: Ending.DONE,
    run_pb2.RUN_STATUS_PARTIAL: Ending.PARTIAL,
    run_pb2.RUN_STATUS_STOPPED: Ending.STOPPED,
    run_pb2.RUN_STATUS_FAILED: Ending.FAILED,
}


def admission_to_wire(admission: Admission, limit: int, lasts: timedelta) -> pb.AcquireLeaseResponse:
    """The answer to AcquireLease; `lasts` is said only of a lease that was given."""
    if not admission.granted:
        return pb.AcquireLeaseResponse(denial=pb.DENIAL_BUSY, active=admission.active, limit=limit)
    return pb.AcquireLeaseResponse(
        granted=True, expires_in=duration_to_wire(lasts), active=admission.active, limit=limit
    )


def leases_to_wire(leases: Sequence[Lease], limit: int) -> pb.GetEngineStatusResponse:
    """The answer to GetEngineStatus."""
    return pb.GetEngineStatusResponse(
        active=len(leases), limit=limit, leases=[lease_to_wire(lease) for lease in leases]
    )


def lease_to_wire(lease: Lease) -> pb.Lease:
    """One lease."""
    expires_at = Timestamp()
    expires_at.FromDatetime(lease.expires_at)
    return pb.Lease(lease_id=lease.lease_id, expires_at=expires_at)


def duration_to_wire(duration: timedelta) -> Duration:
    """A length of time."""
    wire = Duration()
    wire.FromTimedelta(duration)
    return wire


def usage_from_wire(request: pb.RecordUsageRequest) -> RunUsage:
    """A run for the books. Raises InvalidField."""
    return RunUsage(
        run_id=UUID(checked_id("run_id", request.run_id)),
        ending=_ending(request.status),
        mode=_slug("mode", request.mode),
        schema=_slug("schema", request.schema),
        node_count=_count("node_count", request.node_count),
        usage=_by_model(request.usage),
        cost_eur=_cost(request.cost_eur),
        fallbacks=_count("fallbacks", request.fallbacks),
        retries=_count("retries", request.retries),
        partial=request.partial,
        duration_ms=_count("duration_ms", request.duration_ms),
        started_at=_started_at(request),
    )


def _by_model(wire: Sequence[run_pb2.Usage]) -> dict[str, ModelUsage]:
    if len(wire) > MAX_MODELS:
        raise InvalidField("usage", f"must be of at most {MAX_MODELS} models")
    usage: dict[str, ModelUsage] = {}
    for line in wire:
        model = clean(line.model)
        if len(model) > MAX_NAME:
            raise InvalidField("usage.model", f"must have at most {MAX_NAME} characters")
        known = usage.get(model, ModelUsage(0, 0, False))
        usage[model] = ModelUsage(
            known.input_tokens + _count("usage.input_tokens", line.input_tokens),
            known.output_tokens + _count("usage.output_tokens", line.output_tokens),
            known.estimated or line.estimated,
        )
    return usage


def _ending(status: int) -> Ending:
    ending = _ENDINGS.get(status)
    if ending is None:
        raise InvalidField("status", "must be one that ends a run")
    return ending


def _slug(field: str, value: str) -> str:
    if value and not _SLUG.fullmatch(value):
        raise InvalidField(field, "must have 1 to 50 of a-z, 0-9, - and _, or be empty")
    return value


def _count(field: str, value: int) -> int:
    if value < 0:
        raise InvalidField(field, "must not be negative")
    return value


def _cost(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidField("cost_eur", "must be a finite number that isn't negative")
    return value


def _started_at(request: pb.RecordUsageRequest) -> datetime:
    if not request.HasField("started_at"):
        raise InvalidField("started_at", "is missing")
    try:
        return request.started_at.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise InvalidField("started_at", "must be between the years 1 and 9999") from None
