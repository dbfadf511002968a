"""Quota over gRPC."""

import asyncio
from typing import Any

import grpc
from lintello.quota.v1 import quota_pb2 as pb
from lintello.quota.v1 import quota_pb2_grpc

from kit import telemetry
from kit.channel import Peer
from kit.errors import RemoteError
from kit.identity import Caller
from services.engine.ports import Lease, QuotaAway, RunUsage
from services.engine.wire import run_usage_to_wire

ACQUIRE_SECONDS = 0.5
"""Silence longer than this is a denial: nobody waits for a slot."""


class QuotaPeer:
    """The quota service (port Quota)."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._giving_back: list[asyncio.Task[None]] = []
        self._stub = quota_pb2_grpc.QuotaServiceStub(peer.channel)

    async def acquire(self, lease_id: str, caller: Caller) -> Lease:
        """Ask for a slot."""
        request = pb.AcquireLeaseRequest(lease_id=lease_id)
        try:
            answer = await self._peer.unary(self._stub.AcquireLease, request, caller, ACQUIRE_SECONDS)
        except RemoteError as error:
            telemetry.log.warning("quota_away", code=error.code.name)
            # It may have been granted all the same; what nobody uses is given back, without waiting for it.
            self._giving_back.append(task := asyncio.create_task(self.release(lease_id, caller)))
            task.add_done_callback(self._giving_back.remove)
            return Lease(False, "unavailable")
        return Lease(answer.granted, "" if answer.granted else "busy")

    async def renew(self, lease_id: str, caller: Caller) -> None:
        """Keep a slot."""
        await self._quietly(self._stub.RenewLease, pb.RenewLeaseRequest(lease_id=lease_id), caller)

    async def release(self, lease_id: str, caller: Caller) -> None:
        """Give a slot back."""
        await self._quietly(self._stub.ReleaseLease, pb.ReleaseLeaseRequest(lease_id=lease_id), caller)

    async def record(self, usage: RunUsage, caller: Caller) -> None:
        """Enter a run in the books; the same run again changes nothing. Raises QuotaAway."""
        try:
            await self._peer.unary(self._stub.RecordUsage, run_usage_to_wire(usage), caller)
        except RemoteError as error:
            telemetry.log.warning("usage_not_recorded", run_id=usage.run_id, reason=error.reason)
            raise QuotaAway(error.reason) from None

    async def _quietly(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Any, Any], request: object, caller: Caller
    ) -> None:
        try:
            await self._peer.unary(method, request, caller, 1)
        except RemoteError as error:
            telemetry.log.warning("quota_away", code=error.code.name)
