"""QuotaService: decode, call, encode."""

from collections.abc import Mapping
from typing import Any

from lintello.quota.v1 import quota_pb2 as pb
from lintello.quota.v1.quota_pb2_grpc import QuotaServiceServicer

from kit.identity import Access, current
from kit.ids import checked_id
from services.quota.leases import Leases
from services.quota.usage import UsageLog
from services.quota.wire import admission_to_wire, duration_to_wire, leases_to_wire, usage_from_wire

RPC_SERVICE = "lintello.quota.v1.QuotaService"

ACCESS: Mapping[str, Access] = {
    f"/{RPC_SERVICE}/AcquireLease": "service",
    f"/{RPC_SERVICE}/RenewLease": "service",
    f"/{RPC_SERVICE}/ReleaseLease": "service",
    f"/{RPC_SERVICE}/RecordUsage": "service",
    f"/{RPC_SERVICE}/GetEngineStatus": "admin",
}


class QuotaServicer(QuotaServiceServicer):
    """The calls of the quota service."""

    def __init__(self, leases: Leases, usage: UsageLog) -> None:
        """`leases` are the slots it gives out, `usage` the books it keeps."""
        self._leases = leases
        self._usage = usage

    async def AcquireLease(self, request: pb.AcquireLeaseRequest, context: Any) -> pb.AcquireLeaseResponse:
        """Take a slot, or say why not."""
        admission = await self._leases.acquire(checked_id("lease_id", request.lease_id))
        return admission_to_wire(admission, self._leases.limit, self._leases.duration)

    async def RenewLease(self, request: pb.RenewLeaseRequest, context: Any) -> pb.RenewLeaseResponse:
        """Keep a slot."""
        restored = await self._leases.renew(checked_id("lease_id", request.lease_id))
        return pb.RenewLeaseResponse(expires_in=duration_to_wire(self._leases.duration), restored=restored)

    async def ReleaseLease(self, request: pb.ReleaseLeaseRequest, context: Any) -> pb.ReleaseLeaseResponse:
        """Give a slot back."""
        await self._leases.release(checked_id("lease_id", request.lease_id))
        return pb.ReleaseLeaseResponse()

    async def RecordUsage(self, request: pb.RecordUsageRequest, context: Any) -> pb.RecordUsageResponse:
        """Note what a run used, once."""
        run, caller = usage_from_wire(request), current.get()
        return pb.RecordUsageResponse(recorded=await self._usage.record(run, caller.user, caller.subscription))

    async def GetEngineStatus(self, request: pb.GetEngineStatusRequest, context: Any) -> pb.GetEngineStatusResponse:
        """Say who holds the slots."""
        return leases_to_wire(await self._leases.held(), self._leases.limit)
