"""The recorder: what a run says reaches the replay log, in order, once, and whatever happens to the server."""

import asyncio

from prometheus_client import CollectorRegistry

from services.engine.events import Content, Done, EventLog, Trouble
from services.engine.metrics import Metrics
from services.engine.recorder import record
from tests.unit.engine.stores import MemoryReplay

RUN = "a-run"
KEY = RUN.encode()[:32]
DONE = Done("c", "m", "n", "model", 0, 0.0, False, False, "")


def recording(log: EventLog, replay: MemoryReplay, kept_seconds: float = 60) -> "asyncio.Task[None]":
    return asyncio.create_task(record(RUN, KEY, log, replay, Metrics(CollectorRegistry()), kept_seconds))


def numbers(replay: MemoryReplay) -> list[int]:
    return [event.seq for event in replay.written(RUN)]


async def test_every_event_is_written_once_and_in_order_until_the_last() -> None:
    log, replay = EventLog(), MemoryReplay()
    task = recording(log, replay)
    for number in range(5):
        log.emit(Trouble(str(number), "", False))
        await asyncio.sleep(0.003)
    log.emit(DONE)
    await task
    assert replay.written(RUN) == log.since(0, 100)
    assert sum(map(len, replay.batches)) == 6


async def test_the_first_event_is_written_at_once() -> None:
    log, replay = EventLog(), MemoryReplay()
    task = recording(log, replay)
    log.emit(Content("a"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert numbers(replay) == [1]
    log.emit(DONE)
    await task


async def test_what_comes_while_a_write_rests_goes_together() -> None:
    log, replay = EventLog(), MemoryReplay()
    log.emit(Content("a"))
    task = recording(log, replay)
    await asyncio.sleep(0)
    for _ in range(300):
        log.emit(Trouble("t", "", False))
    log.emit(DONE)
    await task
    assert [len(batch) for batch in replay.batches] == [1, 301]


async def test_while_the_log_is_away_nothing_is_lost_and_the_order_stays() -> None:
    log, replay = EventLog(), MemoryReplay()
    replay.server.away = True
    task = recording(log, replay)
    for number in range(3):
        log.emit(Trouble(str(number), "", False))
        await asyncio.sleep(0.005)
    assert numbers(replay) == []
    replay.server.away = False
    log.emit(DONE)
    await task
    assert numbers(replay) == [1, 2, 3, 4]


async def test_what_the_server_has_lost_is_written_again() -> None:
    log, replay = EventLog(), MemoryReplay()
    task = recording(log, replay)
    log.emit(Trouble("1", "", False))
    await asyncio.sleep(0.02)
    assert numbers(replay) == [1]
    replay.server.logs.clear()
    log.emit(DONE)
    await task
    assert numbers(replay) == [1, 2]


async def test_a_log_that_another_process_has_closed_is_left_alone() -> None:
    log, replay = EventLog(), MemoryReplay()
    task = recording(log, replay)
    log.emit(Trouble("mine", "", False))
    await asyncio.sleep(0.02)
    other = MemoryReplay(replay.server)
    ended = EventLog()
    for event in (Trouble("mine", "", False), Trouble("theirs", "", False), DONE):
        ended.emit(event)
    await other.append(RUN, KEY, ended.since(1, 2))
    log.emit(Trouble("late", "", False))
    await task
    assert [getattr(event.event, "code", "done") for event in replay.written(RUN)] == ["mine", "theirs", "done"]


async def test_a_run_that_has_ended_is_not_kept_for_ever_for_a_log_that_is_away() -> None:
    log, replay = EventLog(), MemoryReplay()
    replay.server.away = True
    log.emit(DONE)
    async with asyncio.timeout(5):
        await recording(log, replay, kept_seconds=0.02)
    assert numbers(replay) == []


async def test_writes_that_fail_are_counted() -> None:
    log, replay, registry = EventLog(), MemoryReplay(), CollectorRegistry()
    replay.server.away = True
    log.emit(DONE)
    await record(RUN, KEY, log, replay, Metrics(registry), kept_seconds=0)
    assert registry.get_sample_value("lintello_replay_failures_total") == 1
