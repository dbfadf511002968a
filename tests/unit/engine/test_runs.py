"""Runs: who may end them, how they end, what is kept of them, and for how long."""

import asyncio
import gc

import grpc
import pytest

from kit.errors import RemoteError
from services.engine import runs
from services.engine.domain import Ending
from services.engine.events import Done, EventLog, Trouble
from tests.unit.engine.fakes import (
    CALLER,
    FREE,
    HARD,
    House,
    ScriptedModel,
    done,
    ending_of,
    events,
    over,
)
from tests.unit.engine.stores import MemoryStore


async def test_a_run_that_was_closed_by_somebody_else_ends_as_not_saved() -> None:
    model = ScriptedModel(hang="critique")
    house = House(model)
    run = await house.start(HARD, mode="recherche")
    await model.hanging.wait()
    house.store.closed = True
    run.stop(Ending.PARTIAL)
    found = await events(run)
    assert any(isinstance(event, Trouble) and event.code == "not_saved" for event in found)
    assert done(found).partial


async def test_a_run_stopped_before_its_first_step_still_ends_and_is_stored() -> None:
    house = House()
    run = await house.start(HARD, mode="recherche")
    run.stop(Ending.STOPPED)
    found = await events(run)
    assert done(found).partial
    assert ending_of(house.store) is Ending.STOPPED


async def test_a_run_closed_by_somebody_else_in_mid_think_says_so_once() -> None:
    store = MemoryStore()
    store.closed = True
    found = await House(store=store).ask(HARD, mode="recherche")
    assert [event.code for event in found if isinstance(event, Trouble)] == ["not_saved"]


async def test_stopping_a_run_that_ended_long_ago_is_the_same_answer() -> None:
    house = House()
    run = await house.start("Bonjour")
    await events(run)
    await house.runs.stop(run.run_id, CALLER)
    elsewhere = House(store=house.store)
    await elsewhere.runs.stop(run.run_id, CALLER)


async def test_a_run_of_somebody_else_cannot_be_stopped() -> None:
    house = House(ScriptedModel(hang="conversation"))
    run = await house.start("Bonjour")
    with pytest.raises(RemoteError):
        await house.runs.stop(run.run_id, FREE)
    assert run.stopping is None
    run.stop(Ending.STOPPED)
    await events(run)


async def listening(*houses: House) -> list[asyncio.Task[None]]:
    """The houses hear of stops from now on."""
    tasks = [asyncio.create_task(house.runs.obey()) for house in houses]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


async def test_a_run_elsewhere_is_stopped_by_a_message() -> None:
    house = House(ScriptedModel(hang="conversation"))
    other = house.beside()
    ears = await listening(house, other)
    run = await house.start("Bonjour")
    await house.model.hanging.wait()
    await other.runs.stop(run.run_id, CALLER)
    assert done(await events(run)).partial
    assert ending_of(house.store) is Ending.STOPPED
    for ear in ears:
        ear.cancel()


async def test_a_run_elsewhere_is_stopped_with_its_next_heartbeat_when_the_message_is_lost() -> None:
    house = House(ScriptedModel(hang="conversation"))
    house.stops.lost = True
    run = await house.start("Bonjour")
    await house.model.hanging.wait()
    await house.beside().runs.stop(run.run_id, CALLER)
    assert done(await events(run)).partial
    assert ending_of(house.store) is Ending.STOPPED


async def test_a_heartbeat_says_how_far_the_run_has_come() -> None:
    house = House(ScriptedModel(hang="critique"))
    run = await house.start(HARD, mode="recherche")
    await house.model.hanging.wait()
    await asyncio.sleep(0.1)
    assert house.store.entries[run.run_id].record.last_seq == run.log.last_seq > 1
    run.stop(Ending.STOPPED)
    await over(run)


async def test_a_stop_while_the_end_is_stored_neither_loses_the_end_nor_changes_it() -> None:
    house = House()
    house.store.away = 5
    run = await house.start("Bonjour")
    while not run.ending:
        await asyncio.sleep(0)
    run.stop(Ending.STOPPED)
    assert not done(await events(run)).partial
    assert ending_of(house.store) is Ending.DONE


@pytest.mark.parametrize("message", ["Bonjour", HARD])
async def test_the_ledger_knows_the_number_of_the_last_event_exactly(message: str) -> None:
    house = House()
    run = await house.start(message, mode="recherche")
    await events(run)
    assert house.store.finished[0].last_seq == run.log.last_seq


async def test_an_end_that_the_store_refuses_is_told_and_still_ends_with_done() -> None:
    class Refusing(MemoryStore):
        async def finish(self, finish, caller):  # type: ignore[no-untyped-def]
            raise RemoteError(grpc.StatusCode.RESOURCE_EXHAUSTED, "TREE_FULL", "full")

    found = await House(store=Refusing()).ask("Bonjour")
    assert [event.code for event in found if isinstance(event, Trouble)] == ["not_saved"]
    assert done(found).partial


async def test_a_run_leaves_memory_once_its_end_is_in_the_replay_log() -> None:
    house = House()
    run = await house.start("Bonjour")
    await over(run)
    assert house.runs.find(run.run_id, CALLER.user) is None
    assert isinstance(house.replay.written(run.run_id)[-1].event, Done)


async def test_nothing_of_a_hundred_runs_is_left_in_memory() -> None:
    house = House()
    await asyncio.gather(*(house.ask(f"Bonjour {number}") for number in range(100)))
    gc.collect()
    assert not [found for found in gc.get_objects() if isinstance(found, EventLog)]


async def test_a_run_is_kept_in_memory_while_the_replay_log_is_away() -> None:
    house = House()
    house.replay.server.away = True
    run = await house.start("Bonjour")
    assert run.answering is not None
    await asyncio.wait([run.answering])
    assert house.runs.find(run.run_id, CALLER.user) is run
    house.replay.server.away = False
    await over(run)
    assert house.replay.written(run.run_id) == run.log.since(0, 100)
    assert house.runs.find(run.run_id, CALLER.user) is None


@pytest.mark.parametrize(("late", "kept"), [(0.0, [False, False, True, True, True]), (60.0, [True] * 5)])
async def test_no_more_runs_than_a_bound_are_kept_but_for_those_that_just_ended(
    monkeypatch: pytest.MonkeyPatch, late: float, kept: list[bool]
) -> None:
    monkeypatch.setattr(runs, "KEPT_RUNS", 3)
    monkeypatch.setattr(runs, "LATE_SECONDS", late)
    house = House()
    house.replay.server.away = True
    started = [await house.start(f"Bonjour {number}") for number in range(5)]
    for run in started:
        assert run.answering is not None
        await asyncio.wait([run.answering])
    assert [house.runs.find(run.run_id, CALLER.user) is run for run in started] == kept
    house.replay.server.away = False
    await asyncio.gather(*map(over, started))


async def test_runs_are_counted_by_how_they_end() -> None:
    house = House()
    await house.ask("Bonjour")
    value = house.registry.get_sample_value
    assert value("lintello_runs_started_total") == 1
    assert value("lintello_runs_ended_total", {"ending": "done"}) == 1
    assert value("lintello_runs_in_flight") == 0
    assert value("lintello_runs_in_memory") == 0


async def test_nodes_wait_while_the_store_is_away_and_none_is_lost() -> None:
    store = MemoryStore()
    store.away = 3
    house = House(store=store)
    await house.ask(HARD, mode="recherche")
    assert [node.role.value for node in store.nodes] == ["decompose", "execute", "execute", "critique", "synthesize"]
