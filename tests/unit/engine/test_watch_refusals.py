"""Watching a run: when it is refused, and when it isn't yet."""

import asyncio

import pytest

from kit.errors import RemoteError
from kit.identity import Caller
from services.engine import runs
from services.engine.domain import Ending
from services.engine.events import Done
from services.engine.ports import ReplayAway, StoreAway
from services.engine.watch import EventsExpired, SequenceAhead
from tests.unit.engine.conftest import Ended
from tests.unit.engine.fakes import House, hanging, over

BOB = Caller("bob", "lintello", frozenset(), "gateway")


async def test_a_run_of_somebody_else_is_as_one_that_is_not_there(house: House) -> None:
    run = await hanging(house)
    for reader in (house, house.beside()):
        with pytest.raises(RemoteError, match="NOT_FOUND"):
            await reader.read(run.run_id, 0, BOB)
    run.stop(Ending.STOPPED)
    await over(run)


async def test_the_events_of_a_run_that_ended_over_an_hour_ago_have_expired(ended: Ended) -> None:
    house, run, _ = ended
    house.store.age(run.run_id, hours=1.1)
    house.replay.server.logs.clear()
    with pytest.raises(EventsExpired):
        await house.beside().read(run.run_id)


async def test_events_that_are_kept_longer_are_read_all_the_same(ended: Ended) -> None:
    house, run, said = ended
    house.store.age(run.run_id, hours=1.1)
    assert await house.beside().read(run.run_id) == said


async def test_an_event_that_is_not_there_yet_is_refused_at_once_by_the_process_that_runs_it(house: House) -> None:
    run = await hanging(house)
    with pytest.raises(SequenceAhead):
        await house.read(run.run_id, run.log.last_seq + 1)
    run.stop(Ending.STOPPED)
    await over(run)


async def test_an_event_behind_the_last_one_is_refused_at_once(ended: Ended) -> None:
    house, run, said = ended
    house.replay.server.away = True
    with pytest.raises(SequenceAhead):
        await house.beside().read(run.run_id, said[-1].seq + 1)


async def test_an_event_that_a_run_elsewhere_does_not_come_to_is_refused_after_a_heartbeat(house: House) -> None:
    run = await hanging(house)
    with pytest.raises(SequenceAhead):
        await house.beside().read(run.run_id, run.log.last_seq + 1)
    run.stop(Ending.STOPPED)
    await over(run)


async def test_an_event_that_the_replay_log_lacks_for_a_moment_is_waited_for(house: House) -> None:
    run = await hanging(house)
    log = house.replay.server.logs[run.run_id]
    before, log[:] = list(log), log[:1]
    reading = asyncio.create_task(house.beside().read(run.run_id, len(before)))
    await asyncio.sleep(0.05)
    log[:] = before
    await asyncio.sleep(0.15)
    run.stop(Ending.STOPPED)
    assert await reading == run.log.since(len(before), 100)


async def test_a_replay_log_that_stays_away_is_told(house: House) -> None:
    run = await hanging(house)
    house.replay.server.away = True
    with pytest.raises(ReplayAway):
        await house.beside().read(run.run_id)
    house.replay.server.away = False
    run.stop(Ending.STOPPED)
    await over(run)


async def test_a_store_that_is_away_is_told_to_who_begins_to_read_elsewhere(house: House) -> None:
    run = await hanging(house)
    house.store.unreadable = True
    with pytest.raises(StoreAway):
        await house.beside().read(run.run_id)
    run.stop(Ending.STOPPED)
    await over(run)


async def test_what_is_kept_of_an_old_runs_events_is_read_with_an_end(ended: Ended) -> None:
    house, run, said = ended
    house.store.age(run.run_id, hours=1.1)
    del house.replay.server.logs[run.run_id][1:]
    found = await house.beside().read(run.run_id)
    assert found[0] == said[0]
    assert isinstance(found[-1].event, Done)


async def test_an_event_that_a_process_may_have_told_before_it_died_is_not_refused(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "HEARTBEAT_SECONDS", 60)
    run = await hanging(house)
    had = run.log.last_seq
    del house.replay.server.logs[run.run_id][-1]
    assert run.recording is not None
    run.recording.cancel()
    reading = asyncio.create_task(house.beside().read(run.run_id, had))
    await asyncio.sleep(0.2)
    assert not reading.done()
    house.store.fall_silent(run.run_id)
    assert (await reading)[0].seq == had + 1
    run.stop(Ending.STOPPED)
    await over(run)
