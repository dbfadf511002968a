"""Clients: the services the gateway speaks to, in the name of the user who asks."""

import asyncio
from dataclasses import dataclass
from functools import partial

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceStub, ModeServiceStub
from lintello.treestore.v1.treestore_pb2_grpc import TreeStoreServiceStub

from gateway.following import AWAY, Call, Following
from gateway.settings import GatewaySettings
from kit.channel import Peer
from kit.errors import RemoteError
from kit.identity import FRONT, Caller, Signer
from kit.settings import BadSetting

HEALTH_SECONDS = 2
THINK_PAUSES = (0.1, 0.5)
"""Seconds before a question that no engine took is asked again."""


@dataclass(frozen=True)
class Clients:
    """Channels and stubs; one of them for the whole process."""

    engine_peer: Peer
    treestore_peer: Peer
    quota_peer: Peer
    engine: EngineServiceStub
    modes: ModeServiceStub
    treestore: TreeStoreServiceStub

    async def think(self, request: pb.ThinkRequest, caller: Caller) -> Following:
        """Start a run and follow it.

        The request has an idempotency key: when an engine goes away before its first event, asking another one is
        asking for the same run. Raises RemoteError when the run didn't start.
        """
        pauses = iter(THINK_PAUSES)
        while True:
            call: Call = self.engine_peer.stream(self.engine.Think, request, caller)
            try:
                first = await anext(call, None)
                if first is None:
                    raise RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "")
            except RemoteError as error:
                pause = next(pauses, None)
                if error.code not in AWAY or pause is None:
                    raise
                await asyncio.sleep(pause)
            else:
                watch = partial(self._watch, first.run_id, caller)
                return Following(first.run_id, watch, begun=(first, call))

    def watch(self, run_id: str, after: int, caller: Caller) -> Following:
        """Follow a run after an event's number; nothing is called before the first event is asked for."""
        return Following(run_id, partial(self._watch, run_id, caller), after)

    def _watch(self, run_id: str, caller: Caller, after: int) -> Call:
        request = pb.WatchRunRequest(run_id=run_id, after_seq=after)
        return self.engine_peer.stream(self.engine.WatchRun, request, caller)

    async def not_ready(self) -> list[str]:
        """The names of the services that don't say they are serving."""
        peers = (self.engine_peer, self.treestore_peer, self.quota_peer)
        ready = await asyncio.gather(*(is_serving(peer) for peer in peers))
        return [peer.audience for peer, serving in zip(peers, ready, strict=True) if not serving]

    async def close(self) -> None:
        """Close every channel."""
        for peer in (self.engine_peer, self.treestore_peer, self.quota_peer):
            await peer.close()


async def is_serving(peer: Peer) -> bool:
    """Whether a service's health check answers SERVING within 2 seconds."""
    request = health_pb2.HealthCheckRequest()
    try:
        answer = await health_pb2_grpc.HealthStub(peer.channel).Check(request, timeout=HEALTH_SECONDS)
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def signer_from(settings: GatewaySettings) -> Signer:
    """Who signs internal tokens. Raises BadSetting when the key isn't one, or isn't the gateway's."""
    signer = Signer(settings.internal_key.get_secret_value())
    if signer.holder != FRONT:
        raise BadSetting(f"LINTELLO_INTERNAL_KEY: the gateway's key is {FRONT}:base64")
    return signer


def connect(settings: GatewaySettings, signer: Signer) -> Clients:
    """Open the channels; needs a running event loop, and no service to be there yet."""
    engine = Peer(settings.engine_address, "engine", signer.mint)
    treestore = Peer(settings.treestore_address, "treestore", signer.mint)
    return Clients(
        engine_peer=engine,
        treestore_peer=treestore,
        quota_peer=Peer(settings.quota_address, "quota", signer.mint),
        engine=EngineServiceStub(engine.channel),
        modes=ModeServiceStub(engine.channel),
        treestore=TreeStoreServiceStub(treestore.channel),
    )
