"""How a run starts, or is found to have been started before."""

import asyncio
import time

import pytest

from kit.deadline import budget, deadline
from kit.identity import Caller
from services.engine.domain import Ending, Finish, Question, Started, Thinking
from services.engine.modes.catalog import ModeUnknown
from services.engine.runs import Earlier
from services.engine.subscriptions import ForcedThinkingForbidden
from tests.unit.engine.fakes import (
    CALLER,
    FREE,
    HARD,
    House,
    done,
    ending_of,
    over,
    question,
)
from tests.unit.engine.stores import MemoryStore, Reluctant


async def test_an_unknown_mode_is_refused_before_anything_is_stored() -> None:
    house = House()
    with pytest.raises(ModeUnknown):
        await house.start("Bonjour", mode="astrologie")
    assert house.store.titles == []


async def test_a_free_subscription_may_not_force_a_think() -> None:
    house = House()
    with pytest.raises(ForcedThinkingForbidden):
        await house.start(HARD, FREE, mode="recherche", thinking=Thinking.ON)
    assert house.store.titles == []


async def test_a_key_that_came_before_is_the_run_that_was_started_then() -> None:
    house = House()
    first = await house.start("Bonjour", idempotency_key="k", request_hash=b"h")
    await over(first)
    for replica in (house, house.beside()):
        again = await replica.runs.start(question("Bonjour", idempotency_key="k", request_hash=b"h"), CALLER, True)
        assert again == Earlier(first.run_id)
    assert len(house.model.calls) == 1


async def test_a_key_is_its_users_own() -> None:
    house = House()
    first = await house.start("Bonjour", idempotency_key="k", request_hash=b"h")
    other = await house.start("Bonjour", FREE, idempotency_key="k", request_hash=b"h")
    assert first.run_id != other.run_id
    await asyncio.gather(over(first), over(other))


async def test_a_twin_finds_the_run_in_memory_even_when_its_reply_comes_first() -> None:
    class Slow(MemoryStore):
        async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
            first = not self.entries
            started = await super().start_run(run_id, question, title, caller)
            await asyncio.sleep(0.02 if first else 0)
            return started

    house = House(store=Slow())
    asked = question("Bonjour", idempotency_key="k", request_hash=b"h")
    first = asyncio.create_task(house.runs.start(asked, CALLER, True))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    twin = await house.runs.start(asked, CALLER, True)
    assert isinstance(twin, Earlier)
    assert house.runs.find(twin.run_id, CALLER.user) is await first


async def test_a_run_has_its_own_time_and_not_that_of_the_call_that_asked_for_it() -> None:
    class Timed(MemoryStore):
        left = 0.0

        async def finish(self, finish: Finish, caller: Caller) -> None:
            self.left = budget(60)
            await super().finish(finish, caller)

    store = Timed()
    token = deadline.set(time.monotonic() + 5)
    await House(store=store).ask("Bonjour")
    deadline.reset(token)
    assert store.left == 60


@pytest.mark.parametrize(("lasting", "ending"), [(True, Ending.DONE), (False, Ending.STOPPED)])
async def test_a_caller_that_goes_away_while_its_run_is_started_leaves_none_that_nobody_runs(
    lasting: bool, ending: Ending
) -> None:
    store = Reluctant()
    house = House(store=store)
    starting = asyncio.create_task(house.runs.start(question("Bonjour"), CALLER, lasting))
    await store.has_it.wait()
    starting.cancel()
    await asyncio.sleep(0)
    store.may_say_so.set()
    async with asyncio.timeout(5):
        while not store.finished:
            await asyncio.sleep(0.001)
    assert ending_of(store) is ending


async def test_a_free_subscription_thinks_in_discovery_modes_only() -> None:
    assert done(await House().ask(HARD, FREE, mode="recherche")).thinking
    assert not done(await House().ask(HARD, FREE, mode="code")).thinking
