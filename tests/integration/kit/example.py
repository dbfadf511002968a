"""The example service as a process, and its callers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceStub

from kit.channel import Peer
from tests.servers.identity import USER, Keys, keys
from tests.servers.process import ServiceProcess, running

PATIENCE_SECONDS = 10


@dataclass
class Example:
    """A running example service, called as the gateway calls."""

    process: ServiceProcess
    peer: Peer
    stub: "EngineServiceStub" = field(init=False)

    def __post_init__(self) -> None:
        self.stub = EngineServiceStub(self.peer.channel)

    async def ask(self, message: str, timeout: float = 5) -> list[str]:
        """AssessComplexity: the answer's signals."""
        request = pb.AssessComplexityRequest(message=message)
        return list((await self.peer.unary(self.stub.AssessComplexity, request, USER, timeout)).signals)

    async def where(self) -> int:
        """AssessComplexity: the process id of the replica that answers."""
        return int((await self.ask("where"))[0])

    def watch(self, run_id: str, count: int) -> AsyncGenerator[pb.ThinkingEvent]:
        """WatchRun: `count` events, one every 50 ms."""
        return self.peer.stream(self.stub.WatchRun, pb.WatchRunRequest(run_id=run_id, after_seq=count), USER)

    async def until_written(self, line: str) -> None:
        """Wait for a line of the process's output."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while line not in self.process.lines:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running_example(
    identity: Keys | None = None,
    drain_seconds: float = 30,
    address: str | None = None,
    metrics_port: int | None = None,
) -> AsyncIterator[Example]:
    """Started, and ended with the block."""
    identity = identity or keys()
    settings = {"INTERNAL_PUBLIC_KEYS": identity.public, "DRAIN_SECONDS": str(drain_seconds)}
    if metrics_port is not None:
        settings["METRICS_PORT"] = str(metrics_port)
    async with running("engine", settings, "tests.servers.example", address) as process:
        peer = Peer(process.address, "engine", identity.gateway_signer.mint)
        try:
            yield Example(process, peer)
        finally:
            await peer.close()
