"""Between the wire's messages and the domain's types."""

from collections.abc import Sequence
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from lintello.quota.v1 import quota_pb2 as pb

from services.quota.leases import Admission, Lease


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
