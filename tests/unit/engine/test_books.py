"""What a run used is entered once, and what was deleted is given to nobody."""

import asyncio

import pytest

from kit.errors import RemoteError
from kit.identity import Caller
from services.engine.domain import ModelUsage
from services.engine.events import Done
from services.engine.ports import ModelCall, ModelFailed, Reply, RunUsage
from tests.unit.engine.fakes import (
    CALLER,
    HARD,
    CountingQuota,
    House,
    ScriptedModel,
    done,
    events,
    good,
    over,
)


async def test_usage_is_entered_after_done_and_never_holds_it_up() -> None:
    class Slow(CountingQuota):
        came = asyncio.Event()
        answers = asyncio.Event()

        async def record(self, usage: RunUsage, caller: Caller) -> None:
            self.came.set()
            await self.answers.wait()
            await super().record(usage, caller)

    quota = Slow()
    house = House(quota=quota)
    run = await house.start("Bonjour")
    found = [event async for event in run.log.follow()]
    assert isinstance(found[-1].event, Done)
    await quota.came.wait()
    assert quota.books == {}
    quota.answers.set()
    await over(run)
    assert set(quota.books) == {run.run_id}
    assert house.store.entries[run.run_id].settled


async def test_what_is_entered_is_what_all_calls_used_and_how_they_went() -> None:
    def script(role: str, call: ModelCall) -> str | ModelFailed:
        if role == "critique":
            spent = Reply(
                "", ModelUsage("large", 4, 1, False), 0.5, retries=2, failed=(ModelUsage("small", 3, 0, True),)
            )
            return ModelFailed("unavailable", True, spent)
        return good(role, call)

    house = House(ScriptedModel(script))
    run = await house.start(HARD, mode="recherche")
    await events(run)
    usage = house.quota.books[run.run_id]
    assert {line.model: line.input_tokens for line in usage.usage} == {"model-small": 40, "large": 4, "small": 3}
    assert (usage.details.retries, usage.details.fallbacks, usage.details.node_count) == (2, 0, 5)
    assert usage.details == house.store.finished[0].details


@pytest.mark.parametrize("away", [False, True])
@pytest.mark.parametrize("hang", ["critique", "end"])
async def test_a_run_whose_conversation_is_deleted_ends_and_nothing_gives_its_text_afterwards(
    hang: str, away: bool
) -> None:
    house = House(ScriptedModel(hang=hang))
    run = await house.start(HARD, mode="recherche")
    await house.model.hanging.wait()
    house.replay.server.away = away
    house.store.delete_conversation_of(run.run_id)
    assert run.answering is not None
    await asyncio.wait([run.answering])
    assert done([event.event for event in run.log.since(0, 100)]).partial
    assert house.store.finished == []
    assert house.runs.find(run.run_id, CALLER.user) is None
    for replica in (house, house.beside()):
        with pytest.raises(RemoteError, match="NOT_FOUND"):
            await replica.read(run.run_id)
    house.replay.server.away = False
    await over(run)


@pytest.mark.parametrize("away", [0, 3])
async def test_a_run_whose_conversation_is_deleted_is_entered_in_the_books_all_the_same(away: int) -> None:
    class Returning(CountingQuota):
        left = away

        async def record(self, usage: RunUsage, caller: Caller) -> None:
            self.left -= 1
            self.away = self.left >= 0
            await asyncio.sleep(0)
            await super().record(usage, caller)

    house = House(ScriptedModel(hang="critique"), quota=Returning())
    run = await house.start(HARD, mode="recherche")
    await house.model.hanging.wait()
    house.store.delete_conversation_of(run.run_id)
    await events(run)
    assert house.quota.books[run.run_id].partial
    assert sum(line.input_tokens for line in house.quota.books[run.run_id].usage) > 0


async def test_a_run_whose_write_is_refused_is_entered_in_the_books_all_the_same() -> None:
    class Slow(CountingQuota):
        async def record(self, usage: RunUsage, caller: Caller) -> None:
            await asyncio.sleep(0.01)
            await super().record(usage, caller)

    house = House(quota=Slow())
    house.store.closed = True
    run = await house.start(HARD, mode="recherche")
    await events(run)
    assert house.quota.books[run.run_id].partial


async def test_the_text_of_a_conversation_deleted_after_its_run_is_not_given_from_memory() -> None:
    house = House()
    house.replay.server.away = True
    run = await house.start("Bonjour")
    assert run.answering is not None
    await asyncio.wait([run.answering])
    house.store.delete_conversation_of(run.run_id)
    with pytest.raises(RemoteError, match="NOT_FOUND"):
        await house.read(run.run_id)
    assert house.runs.find(run.run_id, CALLER.user) is None
    house.replay.server.away = False
    await over(run)
