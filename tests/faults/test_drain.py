"""FAULTS 2: SIGTERM with 20 streams open.

Health says NOT_SERVING first; what ends within the grace time ends whole, the rest is saved as partial.
"""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.e2e.client import first
from tests.faults.reader import Reader, is_type
from tests.faults.replicas import with_one, with_one_or_slowly_two, with_two
from tests.faults.site import Site

STREAMS = 20
QUICK = 10
PIECES = [f"mot {number:04} " for number in range(60)]
QUICK_SECONDS, LONG_SECONDS = 3.0, 60.0
"""One is less than the grace time of 5 s under `up`, the other is more."""


@dataclass
class Health:
    """What an engine says of its health, and when."""

    not_serving_at: float = 0.0
    serving: asyncio.Event = field(default_factory=asyncio.Event)

    async def watch(self, address: str) -> None:
        async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            try:
                async for answer in health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest()):
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        self.serving.set()
                    elif not self.not_serving_at:
                        self.not_serving_at = time.monotonic()
            except grpc.aio.AioRpcError:
                return


@dataclass
class Stream:
    """One client, and when it got its `done`."""

    reader: Reader
    done_at: float = 0.0

    async def run(self) -> None:
        await self.reader.ask("Bonjour", thinking="off")
        self.done_at = time.monotonic()


async def open_streams(site: Site) -> tuple[list[Stream], list[asyncio.Task[None]]]:
    """20 clients that are all being answered: 10 answers end soon, 10 don't."""
    rates = [sum(map(len, PIECES)) / 4 / seconds for seconds in (QUICK_SECONDS, LONG_SECONDS)]
    site.trial.set_faults(
        [
            {"match": {"role": "conversation"}, "times": QUICK, "action": {"chunks": PIECES, "rate": rates[0]}},
            {"match": {"role": "conversation"}, "times": QUICK, "action": {"chunks": PIECES, "rate": rates[1]}},
        ]
    )
    streams = [Stream(site.reader(gateway=number % len(site.gateways))) for number in range(STREAMS)]
    tasks = [asyncio.create_task(stream.run()) for stream in streams]
    for stream in streams:
        await stream.reader.heard(is_type("content"))
    return streams, tasks


async def saved(site: Site, stream: Stream) -> tuple[str, bool]:
    """The answer a reload shows, and whether it is marked partial."""
    conversation = first(stream.reader.events, "run_started")["conversation_id"]
    _, answer = (await site.user.get(f"/api/conversations/{conversation}/messages"))["items"]
    return str(answer["content"]), bool(answer["partial"])


@pytest.mark.slow
@with_one
async def test_twenty_streams_end_whole_or_are_saved_as_partial(site: Site) -> None:
    health = Health()
    watching = asyncio.create_task(health.watch(site.stack.grpc_addresses("engine")[0]))
    await asyncio.wait_for(health.serving.wait(), 10)
    streams, tasks = await open_streams(site)
    asked = time.monotonic()
    stopped = site.processes.terminate("engine")
    await asyncio.gather(*tasks)
    await watching
    partial = [stream for stream in streams if first(stream.reader.events, "done")["partial"]]
    ends = Counter(tuple(event.get("code", event["type"]) for event in stream.reader.events[-2:]) for stream in streams)
    assert len(partial) == STREAMS - QUICK, ends
    assert asked < health.not_serving_at < min(stream.done_at for stream in partial)
    await site.processes.back("engine", instead_of=stopped)
    for stream in streams:
        assert await saved(site, stream) == (stream.reader.answer, stream in partial)
        assert stream.reader.answer == "".join(PIECES) or stream in partial
        usage = await site.usage_of(stream.reader.run_id)
        assert usage.partial == (stream in partial)


@with_two
async def test_with_another_engine_questions_go_on_being_answered_during_a_drain(site: Site) -> None:
    streams, tasks = await open_streams(site)
    stopped = site.processes.terminate("engine")
    await asyncio.sleep(1)
    for _ in range(10):
        reader = site.reader()
        await reader.ask("Et moi ?", thinking="off")
        assert first(reader.events, "done")["partial"] is False
        assert reader.connections == 1
    assert site.processes.pid("engine") == stopped, "the drain was over before the questions were"
    for stream in streams:
        await site.gateways[0].delete(f"/api/runs/{stream.reader.run_id}")
    await asyncio.gather(*tasks)
    assert all(stream.reader.done for stream in streams)
    await site.processes.back("engine", instead_of=stopped)


@with_one_or_slowly_two
async def test_a_run_that_was_drained_can_be_read_again_from_its_beginning(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": {"chunks": PIECES, "rate": 3}}])
    reader = site.reader()
    asking = asyncio.create_task(reader.ask("Bonjour", thinking="off"))
    engine = site.engine_of(await site.call_of("conversation"))
    await reader.heard(is_type("content"))
    stopped = site.processes.terminate(engine)
    await asking
    await site.processes.back(engine, instead_of=stopped)
    again = site.reader(reader.run_id)
    await again.come_back()
    assert again.events == reader.events
    assert first(again.events, "done")["partial"] is True
