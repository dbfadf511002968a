"""Watching a run: each rule of who gets what, from which place."""

import asyncio

import pytest

from kit.identity import Caller
from services.engine import watch
from services.engine.domain import Ending
from services.engine.events import Content, Done, Numbered, Trouble
from tests.unit.engine.conftest import Ended
from tests.unit.engine.fakes import CALLER, House, hanging, killed, over

BOB = Caller("bob", "lintello", frozenset(), "gateway")


def last(found: list[Numbered]) -> Done:
    event = found[-1].event
    assert isinstance(event, Done)
    return event


async def test_a_run_of_this_process_is_read_from_memory_without_asking_anybody(house: House) -> None:
    run = await hanging(house)
    house.store.unreadable = house.replay.server.away = True
    reading = asyncio.create_task(house.read(run.run_id, 1))
    await asyncio.sleep(0.01)
    house.store.unreadable = False
    run.stop(Ending.STOPPED)
    assert [event.seq for event in await reading] == list(range(2, run.log.last_seq + 1))
    house.replay.server.away = False
    await over(run)


async def test_a_run_that_goes_on_elsewhere_is_read_to_its_end_as_it_comes(house: House) -> None:
    run = await hanging(house)
    reading = asyncio.create_task(house.beside().read(run.run_id))
    await asyncio.sleep(0.02)
    run.stop(Ending.STOPPED)
    assert await reading == run.log.since(0, 100)


async def test_reading_goes_on_at_the_event_that_is_asked_for(ended: Ended) -> None:
    house, run, said = ended
    assert await house.beside().read(run.run_id, 2) == said[2:]


async def test_a_run_that_has_ended_is_read_from_the_replay_log_by_its_own_process_too(ended: Ended) -> None:
    house, run, said = ended
    assert house.runs.find(run.run_id, CALLER.user) is None
    assert await house.read(run.run_id) == said


async def test_who_has_the_last_event_gets_nothing_more(ended: Ended) -> None:
    house, run, said = ended
    assert await house.beside().read(run.run_id, said[-1].seq) == []


async def test_who_has_the_last_event_needs_no_replay_log(ended: Ended) -> None:
    house, run, said = ended
    house.replay.server.away = True
    assert await house.read(run.run_id, said[-1].seq) == []


async def test_a_run_that_was_abandoned_ends_with_an_error_and_done(house: House) -> None:
    run = await hanging(house)
    said = run.log.since(0, 100)
    await killed(house, run)
    await house.store.unsettled()
    found = await house.beside().read(run.run_id)
    assert found[: len(said)] == said
    assert {event.event for event in found[len(said) : -2]} == {Content("")}
    trouble = found[-2].event
    assert isinstance(trouble, Trouble)
    assert (trouble.code, trouble.retryable) == ("interrupted", True)
    assert last(found).partial
    assert [event.seq for event in found] == list(range(1, len(found) + 1))


async def test_every_reader_of_an_abandoned_run_gets_the_same_end(house: House) -> None:
    run = await hanging(house)
    await killed(house, run)
    one, two = await asyncio.gather(house.beside().read(run.run_id), house.beside().read(run.run_id))
    assert one == two == await house.beside().read(run.run_id)
    assert await house.beside().read(run.run_id, one[-1].seq) == []


async def test_a_run_whose_process_is_silent_is_closed_before_its_end_is_told(house: House) -> None:
    run = await hanging(house)
    await killed(house, run)
    reading = asyncio.create_task(house.beside().read(run.run_id))
    found = await reading
    assert house.store.entries[run.run_id].record.abandoned
    assert last(found).partial


async def test_a_silent_run_is_waited_for_while_the_store_is_away(house: House) -> None:
    run = await hanging(house)
    reading = asyncio.create_task(house.beside().read(run.run_id))
    await asyncio.sleep(0.01)
    house.store.unreadable = True
    await killed(house, run)
    await asyncio.sleep(0.05)
    assert not reading.done()
    house.store.unreadable = False
    assert last(await reading).partial


@pytest.mark.parametrize("unwritten", range(watch.UNWRITTEN_EVENTS + 1))
@pytest.mark.parametrize("first", [True, False])
async def test_a_reader_who_has_more_than_a_dead_process_could_write_gets_the_end_once_and_without_a_gap(
    house: House, unwritten: int, first: bool
) -> None:
    run = await hanging(house)
    had = run.log.last_seq + unwritten
    await killed(house, run)
    if not first:
        await house.beside().read(run.run_id)
    found = await house.beside().read(run.run_id, had)
    assert [event.seq for event in found] == list(range(had + 1, had + 1 + len(found)))
    assert [type(event.event) for event in found if event.event != Content("")] == [Trouble, Done]
    assert await house.beside().read(run.run_id, found[-1].seq) == []


async def test_a_reader_who_is_ahead_of_the_end_too_is_told_it_all_the_same(house: House) -> None:
    run = await hanging(house)
    had = run.log.last_seq + watch.UNWRITTEN_EVENTS + 3
    await killed(house, run)
    found = await house.beside().read(run.run_id, had)
    assert [(event.seq, type(event.event)) for event in found] == [(had + 1, Trouble), (had + 2, Done)]


async def test_a_process_that_comes_back_cannot_write_behind_the_end_that_was_told(house: House) -> None:
    run = await hanging(house)
    house.runs.forget(run.run_id)
    house.store.fall_silent(run.run_id)
    told = await house.beside().read(run.run_id)
    await over(run)
    assert house.replay.written(run.run_id) == told
    assert await house.beside().read(run.run_id) == told


async def test_the_last_events_of_a_run_that_ended_are_waited_for(ended: Ended) -> None:
    house, run, said = ended
    log = house.replay.server.logs[run.run_id]
    whole, log[:] = list(log), log[:1]
    reading = asyncio.create_task(house.beside().read(run.run_id))
    await asyncio.sleep(0.03)
    log[:] = whole
    assert await reading == said


async def test_a_run_whose_events_were_lost_ends_with_what_the_ledger_knows(ended: Ended) -> None:
    house, run, said = ended
    del house.replay.server.logs[run.run_id][1:]
    found = await house.beside().read(run.run_id)
    assert found[0] == said[0]
    trouble, done = found[1].event, last(said)
    assert isinstance(trouble, Trouble)
    assert (trouble.code, trouble.retryable) == ("events_lost", False)
    assert last(found) == done
    assert [event.seq for event in found] == [1, 2, 3]


async def test_a_reader_elsewhere_waits_for_the_replay_log_and_misses_nothing(house: House) -> None:
    run = await hanging(house)
    reading = asyncio.create_task(house.beside().read(run.run_id))
    await asyncio.sleep(0.01)
    house.replay.server.away = True
    run.stop(Ending.STOPPED)
    await asyncio.sleep(0.05)
    house.replay.server.away = False
    assert await reading == run.log.since(0, 100)


async def test_a_run_that_ended_while_the_replay_log_was_away_is_read_from_memory(house: House) -> None:
    house.replay.server.away = True
    run = await hanging(house)
    run.stop(Ending.STOPPED)
    assert run.answering is not None
    await asyncio.wait([run.answering])
    for unreadable in (False, True):
        house.store.unreadable = unreadable
        assert await house.read(run.run_id) == run.log.since(0, 100)
    house.replay.server.away = False
    await over(run)


async def test_a_reader_that_goes_away_stops_neither_the_run_nor_the_others(house: House) -> None:
    run = await hanging(house)
    leaving, staying = (asyncio.create_task(house.beside().read(run.run_id)) for _ in range(2))
    await asyncio.sleep(0.01)
    leaving.cancel()
    await asyncio.sleep(0.01)
    assert not run.log.closed
    run.stop(Ending.STOPPED)
    assert await staying == run.log.since(0, 100)
    assert any(isinstance(event.event, Content) for event in run.log.since(0, 100))
