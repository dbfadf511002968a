"""Redis away: refused within a second, and everything as before when it is back (FAULTS 6)."""

import asyncio
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from structlog.testing import capture_logs

from cli.local.valkey import EmbeddedValkey
from kit.ids import new_id
from services.engine.adapters.replay import RedisReplay
from services.engine.adapters.stops import RedisStops
from services.engine.events import Numbered
from services.engine.ports import ReplayAway, ReplayBehind
from tests.integration.engine.log import DONE, Log, numbered, some

REFUSED_SECONDS = 5
PATIENCE_SECONDS = 20


@pytest.fixture
async def log(valkey: EmbeddedValkey) -> AsyncIterator[Log]:
    """A run's log on a server that can be stopped."""
    replay = RedisReplay(valkey.url)
    yield Log(replay, new_id(), secrets.token_bytes(32))
    await replay.close()


@pytest.fixture
async def stops(valkey: EmbeddedValkey) -> AsyncIterator[RedisStops]:
    """Messages through a server that can be stopped."""
    stops = RedisStops(valkey.url)
    yield stops
    await stops.close()


async def kill(valkey: EmbeddedValkey) -> None:
    """SIGKILL, and wait until it was started again."""
    killed = valkey.pid
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while valkey.pid == killed or not await valkey._answers():
            await asyncio.sleep(0.02)


async def test_a_stopped_server_refuses_and_is_then_found_again(log: Log, valkey: EmbeddedValkey) -> None:
    events = some(1, 3)
    await log.append(*events[:1])
    await valkey.stop()
    await assert_away_in_time(log)
    await valkey.start()
    await log.append(*events[1:])
    assert await log.read() == events


async def test_a_server_that_hangs_refuses_everyone_in_time(log: Log, valkey: EmbeddedValkey) -> None:
    await log.append(numbered(1))
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        await asyncio.gather(*(assert_away_in_time(log) for _ in range(30)))
    finally:
        os.kill(valkey.pid, signal.SIGCONT)
    assert len(await log.read()) == 1


async def test_what_a_server_that_hung_took_all_the_same_can_be_repeated(log: Log, valkey: EmbeddedValkey) -> None:
    events = [*some(1, 3), numbered(4, DONE)]
    await log.append(*events[:2])
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ReplayAway):
            await log.append(*events[2:])
    finally:
        os.kill(valkey.pid, signal.SIGCONT)
    await log.append(*events[2:])
    assert await log.read() == events


async def test_a_log_goes_on_after_the_server_was_killed(log: Log, valkey: EmbeddedValkey) -> None:
    events = [*some(1, 3), numbered(4, DONE)]
    await log.append(*events[:2])
    await kill(valkey)
    await log.append(*events[2:])
    assert await log.read() == events


async def test_a_log_is_whole_after_the_server_was_killed_again_and_again(log: Log, valkey: EmbeddedValkey) -> None:
    events = [*some(1, 2999), numbered(3000, DONE)]

    async def write() -> None:
        place = 0
        while place < len(events):
            try:
                await log.append(*events[place : place + 7])
            except ReplayAway:
                await asyncio.sleep(0.01)
            except ReplayBehind as behind:
                place = behind.last_seq
            else:
                place += 7

    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(write())
        kills = 0
        while not writing.done() and kills < 3:
            await kill(valkey)
            kills += 1
    assert kills
    read: list[Numbered] = []
    while batch := await log.read(after=len(read)):
        read += batch
    assert read == events


async def test_a_process_starts_while_the_server_is_away(valkey: EmbeddedValkey) -> None:
    await valkey.stop()
    log = Log(RedisReplay(valkey.url), new_id(), secrets.token_bytes(32))
    await assert_away_in_time(log)
    await valkey.start()
    await log.append(numbered(1))
    assert len(await log.read()) == 1
    await log.replay.close()


async def test_going_away_and_coming_back_is_told_once(log: Log, valkey: EmbeddedValkey) -> None:
    with capture_logs() as logs:
        await valkey.stop()
        for _ in range(3):
            await assert_away_in_time(log)
        await valkey.start()
        await log.append(numbered(1))
        await log.read()
    assert [entry["event"] for entry in logs] == ["redis_away", "redis_back"]


async def test_a_stop_reaches_every_listener_of_every_process(stops: RedisStops, valkey: EmbeddedValkey) -> None:
    elsewhere = RedisStops(valkey.url)
    async with listening(stops) as first, listening(elsewhere) as second:
        await sent_until_heard(stops, second)
        run_id = await sent_until_heard(elsewhere, first)
        assert await heard(second, run_id)
    await elsewhere.close()


async def test_stops_are_heard_again_after_the_server_was_killed(stops: RedisStops, valkey: EmbeddedValkey) -> None:
    async with listening(stops) as ids:
        await sent_until_heard(stops, ids)
        await kill(valkey)
        await sent_until_heard(stops, ids)


async def test_stops_are_heard_again_after_the_server_was_stopped_for_a_while(
    stops: RedisStops, valkey: EmbeddedValkey
) -> None:
    async with listening(stops) as ids:
        await sent_until_heard(stops, ids)
        await valkey.stop()
        await stops.send(new_id())
        await valkey.start()
        await sent_until_heard(stops, ids)


async def test_listening_begins_while_the_server_is_away(stops: RedisStops, valkey: EmbeddedValkey) -> None:
    await valkey.stop()
    async with listening(stops) as ids:
        await valkey.start()
        await sent_until_heard(stops, ids)


async def test_a_listener_that_is_cancelled_ends(stops: RedisStops) -> None:
    async with listening(stops) as ids:
        await sent_until_heard(stops, ids)


async def assert_away_in_time(log: Log) -> None:
    began = time.monotonic()
    with pytest.raises(ReplayAway):
        await log.read()
    assert time.monotonic() - began < REFUSED_SECONDS


class listening:
    """Gathers the ids that a listener hears until the end of the block."""

    def __init__(self, stops: RedisStops) -> None:
        self._stops = stops

    async def __aenter__(self) -> asyncio.Queue[str]:
        ids: asyncio.Queue[str] = asyncio.Queue()

        async def gather() -> None:
            async with aclosing(self._stops.listen()) as heard:
                async for run_id in heard:
                    ids.put_nowait(run_id)

        self._task = asyncio.create_task(gather())
        return ids

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task], timeout=PATIENCE_SECONDS)
        assert self._task.cancelled()


async def heard(ids: asyncio.Queue[str], run_id: str) -> bool:
    """Whether this id is among those that are heard."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await ids.get() != run_id:
            pass
    return True


async def sent_until_heard(stops: RedisStops, ids: asyncio.Queue[str]) -> str:
    """Send new ids until the last one is heard: one that nobody listens for is lost."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            run_id = new_id()
            await stops.send(run_id)
            try:
                async with asyncio.timeout(0.1):
                    while await ids.get() != run_id:
                        pass
                return run_id
            except TimeoutError:
                continue
