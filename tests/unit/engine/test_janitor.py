"""The janitor: whatever ended without being entered in the books is entered, once, and abandoned runs are closed."""

import asyncio

import pytest

from services.engine.domain import Ending
from services.engine.janitor import keep_sweeping, sweep
from services.engine.ports import StoreAway
from tests.unit.engine.fakes import HARD, CountingQuota, House, ScriptedModel, over


async def test_a_run_that_quota_was_away_for_is_entered_with_the_next_sweep() -> None:
    house = House()
    house.quota.away = True
    found = await house.ask("Bonjour")
    (run_id,) = house.store.entries
    assert house.quota.books == {}
    house.quota.away = False
    assert await sweep(house.store, house.quota, house.metrics) == 1
    assert sum(line.input_tokens for line in house.quota.books[run_id].usage) == 10
    assert await sweep(house.store, house.quota, house.metrics) == 0
    assert found


async def test_an_abandoned_run_is_closed_entered_as_partial_and_gives_its_slot_back() -> None:
    house = House(ScriptedModel(hang="critique"))
    run = await house.start(HARD, mode="recherche")
    await house.model.hanging.wait()
    house.store.fall_silent(run.run_id)
    assert house.quota.held == {run.run_id}
    await sweep(house.store, house.quota, house.metrics)
    assert house.store.entries[run.run_id].record.abandoned
    assert house.quota.held == set()
    assert (house.quota.books[run.run_id].ending, house.quota.books[run.run_id].partial) == (Ending.PARTIAL, True)
    run.stop(Ending.STOPPED)
    await over(run)


async def test_a_run_that_goes_on_is_left_alone() -> None:
    house = House(ScriptedModel(hang="conversation"))
    run = await house.start("Bonjour")
    await house.model.hanging.wait()
    assert await sweep(house.store, house.quota, house.metrics) == 0
    assert house.store.entries[run.run_id].record.status == "running"
    run.stop(Ending.STOPPED)
    await over(run)


async def test_a_run_that_quota_refuses_does_not_hold_up_those_behind_it() -> None:
    class Picky(CountingQuota):
        refused = ""

        async def record(self, usage, caller):  # type: ignore[no-untyped-def]
            self.away = usage.run_id == self.refused
            await super().record(usage, caller)

    quota = Picky()
    house = House(quota=quota)
    for message in ("Un", "Deux"):
        await house.ask(message)
    quota.books.clear()
    for entry in house.store.entries.values():
        entry.settled = False
    first, second = house.store.entries
    quota.refused = first
    assert await sweep(house.store, quota, house.metrics) == 1
    assert set(quota.books) == {second}


async def test_the_number_of_runs_that_wait_is_measured() -> None:
    house = House()
    house.quota.away = True
    for message in ("Un", "Deux", "Trois"):
        await house.ask(message)
    await sweep(house.store, house.quota, house.metrics)
    assert house.registry.get_sample_value("lintello_runs_unsettled") == 3


async def test_sweeping_goes_on_after_the_store_was_away() -> None:
    house = House()
    house.quota.away = True
    await house.ask("Bonjour")
    house.quota.away, house.store.unreadable = False, True
    sweeping = asyncio.create_task(keep_sweeping(house.store, house.quota, house.metrics, period=0.001))
    await asyncio.sleep(0.02)
    assert house.quota.books == {}
    house.store.unreadable = False
    async with asyncio.timeout(5):
        while not house.quota.books:
            await asyncio.sleep(0.001)
    sweeping.cancel()


async def test_a_sweep_says_that_the_store_is_away() -> None:
    house = House()
    house.store.unreadable = True
    with pytest.raises(StoreAway):
        await sweep(house.store, house.quota, house.metrics)
