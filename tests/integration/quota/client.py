"""The calls of the quota service as the engine and the admin page make them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import run_pb2
from lintello.quota.v1 import quota_pb2 as pb
from lintello.quota.v1.quota_pb2_grpc import QuotaServiceStub

from kit.channel import Peer
from kit.identity import Caller
from kit.ids import new_id
from tests.servers.identity import ADMIN, USER, Keys
from tests.servers.process import ServiceProcess

BEGAN = datetime(2026, 11, 30, 12, 0, 0, 123_000, tzinfo=UTC)


def usage_request(**fields: Any) -> pb.RecordUsageRequest:
    """A think that ended well, with these fields instead of its own."""
    started_at = Timestamp()
    started_at.FromDatetime(BEGAN)
    request = {
        "run_id": new_id(),
        "status": run_pb2.RUN_STATUS_DONE,
        "mode": "analyse",
        "schema": "tree",
        "node_count": 7,
        "usage": [run_pb2.Usage(model="small", input_tokens=100, output_tokens=20)],
        "cost_eur": 0.25,
        "fallbacks": 1,
        "retries": 2,
        "duration_ms": 4_500,
        "started_at": started_at,
    }
    return pb.RecordUsageRequest(**{**request, **fields})


class Quota:
    """A client of one running service."""

    def __init__(self, process: ServiceProcess, engine: Peer, gateway: Peer) -> None:
        self.process = process
        self._engine, self._gateway = engine, gateway
        self._as_engine, self._as_gateway = QuotaServiceStub(engine.channel), QuotaServiceStub(gateway.channel)

    @classmethod
    @asynccontextmanager
    async def at(cls, process: ServiceProcess, identity: Keys) -> AsyncIterator["Quota"]:
        """Connected until the end of the block."""
        engine = Peer(process.address, "quota", identity.engine_signer.mint)
        gateway = Peer(process.address, "quota", identity.gateway_signer.mint)
        try:
            yield cls(process, engine, gateway)
        finally:
            await engine.close()
            await gateway.close()

    async def acquire(self, lease_id: str | None = None) -> pb.AcquireLeaseResponse:
        """As the engine; without an id, for a new run."""
        request = pb.AcquireLeaseRequest(lease_id=new_id() if lease_id is None else lease_id)
        return await self._engine.unary(self._as_engine.AcquireLease, request, USER)

    async def renew(self, lease_id: str) -> pb.RenewLeaseResponse:
        """As the engine."""
        return await self._engine.unary(self._as_engine.RenewLease, pb.RenewLeaseRequest(lease_id=lease_id), USER)

    async def release(self, lease_id: str) -> pb.ReleaseLeaseResponse:
        """As the engine."""
        return await self._engine.unary(self._as_engine.ReleaseLease, pb.ReleaseLeaseRequest(lease_id=lease_id), USER)

    async def record(self, request: pb.RecordUsageRequest | None = None, caller: Caller = USER) -> bool:
        """As the engine, for this user; without a request, a new run."""
        answer = await self._engine.unary(self._as_engine.RecordUsage, request or usage_request(), caller)
        return answer.recorded

    async def status(self) -> pb.GetEngineStatusResponse:
        """As an admin through the gateway."""
        return await self._gateway.unary(self._as_gateway.GetEngineStatus, pb.GetEngineStatusRequest(), ADMIN)

    async def held(self) -> list[str]:
        """The ids of the leases held now."""
        return [lease.lease_id for lease in (await self.status()).leases]

    async def acquire_as_gateway(self) -> pb.AcquireLeaseResponse:
        """A service's call with a user's token."""
        request = pb.AcquireLeaseRequest(lease_id=new_id())
        return await self._gateway.unary(self._as_gateway.AcquireLease, request, USER)

    async def record_as_gateway(self) -> pb.RecordUsageResponse:
        """A service's call with a user's token."""
        return await self._gateway.unary(self._as_gateway.RecordUsage, usage_request(), USER)

    async def status_as_user(self) -> pb.GetEngineStatusResponse:
        """An admin's call by a user who isn't one."""
        return await self._gateway.unary(self._as_gateway.GetEngineStatus, pb.GetEngineStatusRequest(), USER)
