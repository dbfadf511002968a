"""The quota service's types on the wire."""

from datetime import UTC, datetime, timedelta

from lintello.quota.v1 import quota_pb2 as pb

from services.quota.leases import Admission, Lease
from services.quota.wire import admission_to_wire, leases_to_wire

LASTS = timedelta(seconds=30)


def test_a_denial_promises_no_time() -> None:
    answer = admission_to_wire(Admission(granted=False, active=20), limit=20, lasts=LASTS)
    assert answer == pb.AcquireLeaseResponse(denial=pb.DENIAL_BUSY, active=20, limit=20)


def test_a_granted_lease_carries_no_denial() -> None:
    answer = admission_to_wire(Admission(granted=True, active=1), limit=20, lasts=LASTS)
    assert (answer.granted, answer.denial) == (True, pb.DENIAL_UNSPECIFIED)
    assert answer.expires_in.ToTimedelta() == LASTS


def test_an_expiry_keeps_its_milliseconds() -> None:
    at = datetime(2026, 11, 30, 12, 0, 0, 123_000, tzinfo=UTC)
    answer = leases_to_wire([Lease("run", at)], limit=20)
    assert answer.leases[0].expires_at.ToMilliseconds() == round(at.timestamp() * 1000)
    assert (answer.active, answer.limit) == (1, 20)
