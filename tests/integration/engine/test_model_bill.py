"""What a call is charged, against the model server's ledger: whole, tried again, handed down, failed, cut short."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from cli.trial.ledger import Call
from cli.trial.server import TrialServer, serving
from kit.model import ChatModel
from services.engine.adapters.aliases import Aliases
from services.engine.adapters.model import ChatModels
from services.engine.domain import Alias, Bill, Turn
from services.engine.ports import ModelCall, ModelFailed, Reply

SMALL, LARGE = "lintello-essai-small", "lintello-essai-large"
NEAR = 0.05
LONG = "Voici une réponse assez longue, avec des accents. " * 40


@pytest.fixture
async def trial() -> AsyncGenerator[TrialServer, None]:
    async with serving() as server:
        yield server


@pytest.fixture
async def models(trial: TrialServer) -> AsyncGenerator[ChatModels, None]:
    """The models, after a few answers that came whole."""
    client = ChatModel(trial.base_url, None, timeout=5, idle_timeout=0.3, sleep=lambda _: asyncio.sleep(0))
    models = ChatModels(client, Aliases(client, {}))
    for _ in range(2):
        await models.ask(question())
        await said(models, question())
    trial.reset()
    yield models
    await client.aclose()


def question(alias: Alias = "large") -> ModelCall:
    asked = "Comment financer une coopérative d'été, et par quelles étapes faut-il commencer ? " * 8
    return ModelCall(alias, "Tu aides avec soin. " * 20, [Turn("user", asked)])


def misbehave(trial: TrialServer, *actions: dict[str, Any]) -> None:
    """The next calls go wrong, one after another."""
    trial.set_faults([{"match": {}, "times": 1, "action": action} for action in actions])


async def said(models: ChatModels, call: ModelCall, pieces: int = 1_000_000) -> Reply | str:
    """Stream a call: its reply, or its text when it was left after so many pieces."""
    text = ""
    async with aclosing(models.stream(call)) as stream:
        async for item in stream:
            if isinstance(item, Reply):
                return item
            text += item
            pieces -= 1
            if pieces == 0:
                break
    return text


def charged(*replies: Reply) -> dict[str, tuple[int, int]]:
    """Tokens read and written by model, as a run's bill has them."""
    bill = Bill()
    for reply in replies:
        bill.add(reply.usage, reply.cost_eur)
        for usage in reply.failed:
            bill.add(usage, 0.0)
    return {name: (line.input_tokens, line.output_tokens) for name, line in bill.lines.items()}


def served(calls: list[Call]) -> dict[str, tuple[int, int]]:
    """The same as the server has it; a status other than 200 costs nothing."""
    sums: dict[str, tuple[int, int]] = {}
    for call in calls:
        if call.status in (None, 200):
            read, written = sums.get(call.model, (0, 0))
            sums[call.model] = (read + call.prompt_tokens, written + call.completion_tokens)
    return sums


def assert_near(bill: dict[str, tuple[int, int]], ledger: dict[str, tuple[int, int]]) -> None:
    assert bill.keys() == ledger.keys()
    for name, tokens in bill.items():
        assert tokens == pytest.approx(ledger[name], rel=NEAR, abs=4)


async def test_a_whole_answer_is_charged_to_the_token(trial: TrialServer, models: ChatModels) -> None:
    replies = [await models.ask(question()), await said(models, question("small"))]
    assert all(isinstance(reply, Reply) and reply.retries == 0 for reply in replies)
    assert charged(*replies) == served(await trial.ended(2))  # type: ignore[arg-type]


async def test_a_try_that_was_charged_and_gave_nothing_is_on_the_bill(trial: TrialServer, models: ChatModels) -> None:
    misbehave(trial, {"text": ""})
    reply = await models.ask(question())
    assert (reply.retries, reply.fallback_from) == (1, "")
    assert charged(reply) == served(await trial.ended(2))


async def test_tries_of_the_model_above_are_on_the_bill_under_its_own_name(
    trial: TrialServer, models: ChatModels
) -> None:
    misbehave(trial, {"text": ""}, {"text": ""})
    reply = await said(models, question())
    assert isinstance(reply, Reply)
    assert (reply.usage.model, reply.fallback_from, reply.retries) == (SMALL, LARGE, 1)
    assert [usage.model for usage in reply.failed] == [LARGE, LARGE]
    assert charged(reply) == served(await trial.ended(3))


async def test_the_cost_is_that_of_all_tries_at_each_model_s_price(trial: TrialServer, models: ChatModels) -> None:
    misbehave(trial, {"text": ""}, {"text": ""})
    reply = await models.ask(question())
    tokens = served(await trial.ended(3))
    expected = sum((tokens[LARGE][0] * 1.80, tokens[LARGE][1] * 5.40, tokens[SMALL][0] * 0.10, tokens[SMALL][1] * 0.30))
    assert reply.cost_eur == pytest.approx(expected / 1_000_000)


async def test_refused_tries_are_counted_and_cost_nothing(trial: TrialServer, models: ChatModels) -> None:
    misbehave(trial, {"status": 503}, {"status": 429})
    reply = await models.ask(question())
    assert (reply.retries, reply.failed) == (2, ())
    assert charged(reply) == served(await trial.ended(3))


async def test_a_call_that_fails_for_good_is_charged_what_its_tries_were(
    trial: TrialServer, models: ChatModels
) -> None:
    misbehave(trial, *[{"text": ""}] * 4)
    with pytest.raises(ModelFailed) as failure:
        await models.ask(question())
    spent = failure.value.spent
    assert spent is not None
    assert (spent.retries, spent.fallback_from) == (2, "")
    assert charged(spent) == served(await trial.ended(4))


async def test_a_call_that_used_nothing_has_nothing_to_charge(trial: TrialServer, models: ChatModels) -> None:
    misbehave(trial, {"status": 401})
    with pytest.raises(ModelFailed) as failure:
        await models.ask(question())
    assert failure.value.spent is None


async def test_an_answer_that_breaks_off_is_charged_near_the_server_s_numbers(
    trial: TrialServer, models: ChatModels
) -> None:
    misbehave(trial, {"text": ""}, {"text": LONG, "hang": "middle"})
    with pytest.raises(ModelFailed) as failure:
        await said(models, question())
    spent = failure.value.spent
    assert spent is not None
    assert spent.usage.estimated
    assert_near(charged(spent), served(await trial.ended(2)))


async def test_an_answer_that_is_stopped_is_charged_near_the_server_s_numbers(
    trial: TrialServer, models: ChatModels
) -> None:
    misbehave(trial, {"text": ""}, {"text": LONG, "reasoning": "Je réfléchis. " * 40, "rate": 2000})
    call = question()
    text = await said(models, call, pieces=60)
    assert isinstance(text, str)
    reply = models.estimate(call, text)
    assert (reply.text, reply.retries, reply.usage.model) == (text, 1, LARGE)
    calls = await trial.ended(2)
    assert calls[-1].aborted
    assert_near(charged(reply), served(calls))


async def test_a_call_that_is_stopped_before_its_answer_is_charged_its_prompt(
    trial: TrialServer, models: ChatModels
) -> None:
    misbehave(trial, {"hang": "before"})
    call = question()
    asking = asyncio.create_task(models.ask(call))
    while not trial.calls:
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    assert_near(charged(models.estimate(call, "")), served(await trial.ended(1)))


async def test_a_call_that_was_never_made_is_charged_nothing(models: ChatModels) -> None:
    assert charged(models.estimate(question(), "")) == {}
