"""Two engines, one ledger, one Redis: a run is read, stopped and ended through either. Quota is away all the time."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

import pytest
from lintello.common.v1 import run_pb2
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceStub

from cli.trial.server import TrialServer, serving
from kit.channel import Peer
from kit.identity import Caller
from kit.ids import new_id
from tests.servers.identity import Keys
from tests.servers.process import ServiceProcess, running

PATIENCE_SECONDS = 40.0
"""For an engine that was killed to be noticed: 15 s of silence, a janitor's round, and more on a slow machine."""


class Engine:
    """One running engine, as the gateway calls it for a user."""

    def __init__(self, service: ServiceProcess, peer: Peer, caller: Caller) -> None:
        self.process = service.process
        self._peer, self._caller = peer, caller
        self._stub = EngineServiceStub(peer.channel)

    async def think(self, message: str, key: str = "") -> AsyncGenerator[pb.ThinkingEvent, None]:
        request = pb.ThinkRequest(
            message=message, locale="fr", on_disconnect=pb.ON_DISCONNECT_CONTINUE, idempotency_key=key
        )
        async with aclosing(self._peer.stream(self._stub.Think, request, self._caller)) as events:
            async for event in events:
                yield event

    async def watch(self, run_id: str, after: int = 0) -> list[pb.ThinkingEvent]:
        request = pb.WatchRunRequest(run_id=run_id, after_seq=after)
        async with (
            asyncio.timeout(PATIENCE_SECONDS),
            aclosing(self._peer.stream(self._stub.WatchRun, request, self._caller)) as events,
        ):
            return [event async for event in events]

    async def stop(self, run_id: str) -> None:
        await self._peer.unary(self._stub.StopRun, pb.StopRunRequest(run_id=run_id), self._caller)

    async def runs(self) -> list[pb.Run]:
        return list((await self._peer.unary(self._stub.ListRuns, pb.ListRunsRequest(), self._caller)).runs)


@pytest.fixture(scope="module")
async def trial() -> AsyncIterator[TrialServer]:
    """The model; says its answers slowly enough to be interrupted."""
    async with serving(rate=100) as server:
        yield server


@pytest.fixture(scope="module")
async def start(
    treestore: ServiceProcess, redis_url: str, trial: TrialServer, identity: Keys
) -> Callable[[], AbstractAsyncContextManager[Engine]]:
    """Starts an engine, for one and the same user."""
    caller = Caller(f"alice-{new_id()}", "pro", frozenset({"user"}))
    settings = {
        "TREESTORE_ADDRESS": treestore.address,
        "QUOTA_ADDRESS": "127.0.0.1:1",
        "REDIS_URL": redis_url,
        "LLM_BASE_URL": trial.base_url,
        "INTERNAL_KEY": identity.engine,
        "INTERNAL_PUBLIC_KEYS": identity.public,
    }

    @asynccontextmanager
    async def engine() -> AsyncIterator[Engine]:
        async with running("engine", settings) as service:
            peer = Peer(service.address, "engine", identity.gateway_signer.mint)
            yield Engine(service, peer, caller)
            await peer.close()

    return engine


@pytest.fixture(scope="module")
async def engines(start: Callable[[], AbstractAsyncContextManager[Engine]]) -> AsyncIterator[list[Engine]]:
    """Two replicas."""
    async with start() as first, start() as second:
        yield [first, second]


async def begun(engine: Engine, key: str = "") -> tuple[str, list[pb.ThinkingEvent]]:
    """Ask a question, and leave after a few events: the run, and what was said until then."""
    events: list[pb.ThinkingEvent] = []
    async with aclosing(engine.think("Comment financer une coopérative ?", key)) as answer:
        async for event in answer:
            events.append(event)
            if len(events) == 3:
                break
    return events[0].run_id, events


async def test_a_run_is_read_the_same_at_the_replica_that_has_it_and_at_the_other(engines: list[Engine]) -> None:
    first, second = engines
    run_id, seen = await begun(first)
    here, there = await asyncio.gather(first.watch(run_id), second.watch(run_id))
    assert here == there
    assert here[: len(seen)] == seen
    assert [event.seq for event in here] == list(range(1, len(here) + 1))
    assert here[-1].WhichOneof("event") == "done"


async def test_a_reader_goes_on_at_the_other_replica_where_it_left_the_first(engines: list[Engine]) -> None:
    run_id, seen = await begun(engines[0])
    rest = await engines[1].watch(run_id, after=seen[-1].seq)
    assert [event.seq for event in (*seen, *rest)] == list(range(1, len(seen) + len(rest) + 1))
    assert await engines[1].watch(run_id, after=rest[-1].seq) == []


async def test_a_run_is_stopped_through_the_other_replica(engines: list[Engine]) -> None:
    run_id, _ = await begun(engines[0])
    await engines[1].stop(run_id)
    done = (await engines[1].watch(run_id))[-1].done
    assert done.partial
    stopped = (await engines[1].runs())[0]
    assert (stopped.run_id, stopped.status) == (run_id, run_pb2.RUN_STATUS_STOPPED)


async def test_the_same_request_at_the_other_replica_is_the_same_run(engines: list[Engine]) -> None:
    run_id, _ = await begun(engines[0], "clef")
    twin = [event async for event in engines[1].think("Comment financer une coopérative ?", "clef")]
    assert twin == await engines[0].watch(run_id)


async def test_the_run_of_a_killed_engine_ends_at_the_other_with_what_there_was(
    engines: list[Engine], start: Callable[[], AbstractAsyncContextManager[Engine]]
) -> None:
    second = engines[1]
    async with start() as first:
        run_id, seen = await begun(first)
        await asyncio.sleep(0.3)
        first.process.kill()
    readers = await asyncio.gather(second.watch(run_id), second.watch(run_id))
    events = readers[0]
    assert readers[1] == events
    assert events[: len(seen)] == seen
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.WhichOneof("event") for event in events[-2:]] == ["error", "done"]
    assert (events[-2].error.retryable, events[-1].done.partial) == (True, True)
    assert await second.watch(run_id, after=events[-1].seq) == []
