"""How a process that is told to stop ends its runs."""

import asyncio

import pytest

from kit.errors import ShuttingDown
from services.engine import runs
from services.engine.domain import Ending
from services.engine.events import Done
from tests.unit.engine.fakes import (
    HARD,
    House,
    ScriptedModel,
    done,
    ending_of,
    events,
    over,
)
from tests.unit.engine.stores import Reluctant


async def test_a_drained_engine_takes_no_question_and_ends_what_runs_as_partial() -> None:
    model = ScriptedModel(hang="critique")
    house = House(model)
    run = await house.start(HARD, mode="recherche")
    await model.hanging.wait()
    await house.runs.drain(0.01)
    assert ending_of(house.store) is Ending.PARTIAL
    assert done(await events(run)).partial


async def test_a_draining_process_takes_no_question() -> None:
    house = House()
    await house.runs.drain(0)
    with pytest.raises(ShuttingDown):
        await house.start("Bonjour")


async def test_a_run_that_ends_within_the_grace_time_ends_whole() -> None:
    house = House()
    run = await house.start(HARD, mode="recherche")
    await house.runs.drain(10)
    assert not done([event.event for event in run.log.since(0, 100)]).partial
    assert ending_of(house.store) is Ending.DONE


async def test_when_a_drain_is_over_ends_are_told_written_and_in_the_books() -> None:
    house = House(ScriptedModel(hang="critique"))
    run = await house.start(HARD, mode="recherche")
    await house.model.hanging.wait()
    await house.runs.drain(0)
    assert ending_of(house.store) is Ending.PARTIAL
    assert house.replay.written(run.run_id) == run.log.since(0, 100)
    assert isinstance(run.log.since(0, 100)[-1].event, Done)
    assert house.store.entries[run.run_id].settled


async def test_a_run_that_the_store_was_slow_to_start_is_cut_by_the_drain_too() -> None:
    store = Reluctant()
    house = House(ScriptedModel(hang="conversation"), store)
    starting = asyncio.create_task(house.start("Bonjour"))
    await store.has_it.wait()
    draining = asyncio.create_task(house.runs.drain(0))
    await asyncio.sleep(0.01)
    store.may_say_so.set()
    await asyncio.gather(starting, draining)
    assert ending_of(store) is Ending.PARTIAL


async def test_a_drain_does_not_wait_for_a_replay_log_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CUT_SECONDS", 0.05)
    house = House()
    house.replay.server.away = True
    run = await house.start("Bonjour")
    async with asyncio.timeout(5):
        await house.runs.drain(60)
    assert ending_of(house.store) is Ending.DONE
    house.replay.server.away = False
    await over(run)
