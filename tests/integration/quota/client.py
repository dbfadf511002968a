"""The calls of the quota service as the engine and the admin page make them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lintello.quota.v1 import quota_pb2 as pb
from lintello.quota.v1.quota_pb2_grpc import QuotaServiceStub

from kit.channel import Peer
from kit.ids import new_id
from tests.servers.identity import ADMIN, USER, Keys
from tests.servers.process import ServiceProcess


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

    async def status_as_user(self) -> pb.GetEngineStatusResponse:
        """An admin's call by a user who isn't one."""
        return await self._gateway.unary(self._as_gateway.GetEngineStatus, pb.GetEngineStatusRequest(), USER)
