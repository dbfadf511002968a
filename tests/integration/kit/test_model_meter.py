"""What a call is said to have used, against the ledger of the server that was asked."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from cli.trial.ledger import Call
from cli.trial.request import MODELS
from cli.trial.server import TrialServer, serving
from kit.model import ChatModel, ChatRequest, Message, Meter, ModelError, Piece

QUESTION = "Comment financer une coopérative d'été, et par quelles étapes faut-il commencer cette année ? "
REQUEST = ChatRequest(MODELS[0], [Message("system", "Tu aides. " * 30), Message("user", QUESTION * 8)])
NEAR = 0.03


@pytest.fixture
async def trial() -> AsyncGenerator[TrialServer, None]:
    async with serving() as server:
        yield server


@pytest.fixture
async def model(trial: TrialServer) -> AsyncGenerator[ChatModel, None]:
    """A client that has seen a few answers of this server whole."""
    caller = ChatModel(trial.base_url, None, idle_timeout=0.3, random=lambda: 1.0)
    for _ in range(2):
        await caller.chat(REQUEST)
        await read(caller, Meter())
    trial.reset()
    yield caller
    await caller.aclose()


async def read(model: ChatModel, meter: Meter, pieces: int = 1_000_000) -> None:
    """Stream an answer, and leave after so many pieces."""
    async with aclosing(model.stream(REQUEST, meter)) as items:
        async for item in items:
            pieces -= isinstance(item, Piece)
            if pieces <= 0:
                return


def misbehave(trial: TrialServer, times: int, **action: Any) -> None:
    trial.set_faults([{"match": {}, "times": times, "action": action}])


def total(meter: Meter) -> tuple[int, int]:
    """Tokens read and written by all tries."""
    uses = [*meter.failed, *filter(None, [meter.used])]
    return sum(use.input_tokens for use in uses), sum(use.output_tokens for use in uses)


def charged(calls: list[Call]) -> tuple[int, int]:
    """The same, as the server has it."""
    return sum(call.prompt_tokens for call in calls), sum(call.completion_tokens for call in calls)


async def test_whole_answers_are_the_server_s_own_numbers(trial: TrialServer, model: ChatModel) -> None:
    meter = Meter()
    await model.chat(REQUEST, meter)
    assert total(meter) == charged(await trial.ended(1))


async def test_failed_tries_that_were_charged_are_counted(trial: TrialServer, model: ChatModel) -> None:
    misbehave(trial, 1, text="")
    meter = Meter()
    await read(model, meter)
    assert (meter.tries, total(meter)) == (2, charged(await trial.ended(2)))


async def test_a_stream_that_is_left_is_estimated_near_the_server_s_numbers(
    trial: TrialServer, model: ChatModel
) -> None:
    misbehave(trial, 1, text="Voici une réponse assez longue. " * 40, rate=400)
    meter = Meter()
    await read(model, meter, pieces=60)
    (call,) = await trial.ended(1)
    assert call.aborted
    assert meter.used is not None
    assert meter.used.estimated
    assert total(meter) == pytest.approx(charged([call]), rel=NEAR, abs=4)


async def test_a_left_stream_s_reasoning_is_in_the_estimate(trial: TrialServer, model: ChatModel) -> None:
    misbehave(trial, 1, reasoning="Je réfléchis longuement. " * 40, text="Voici. " * 40, rate=2000)
    meter = Meter()
    await read(model, meter, pieces=5)
    (call,) = await trial.ended(1)
    assert call.completion_tokens > 200
    assert total(meter) == pytest.approx(charged([call]), rel=NEAR, abs=10)


async def test_a_stream_that_breaks_is_estimated_near_the_server_s_numbers(
    trial: TrialServer, model: ChatModel
) -> None:
    misbehave(trial, 1, text="Voici une réponse assez longue. " * 40, hang="middle")
    meter = Meter()
    with pytest.raises(ModelError):
        await read(model, meter)
    assert total(meter) == pytest.approx(charged(await trial.ended(1)), rel=NEAR, abs=4)


async def test_a_call_cancelled_before_its_answer_has_used_its_prompt(trial: TrialServer, model: ChatModel) -> None:
    misbehave(trial, 1, hang="before")
    meter = Meter()
    call = asyncio.create_task(model.chat(REQUEST, meter))
    while not trial.calls:
        await asyncio.sleep(0.01)
    call.cancel()
    await asyncio.wait([call])
    assert total(meter) == pytest.approx(charged(await trial.ended(1)), rel=NEAR)


async def test_a_refused_connection_has_used_nothing(trial: TrialServer, model: ChatModel) -> None:
    await trial.stop()
    meter = Meter()
    with pytest.raises(ModelError):
        await model.chat(REQUEST, meter)
    assert (meter.tries, total(meter)) == (3, (0, 0))


async def test_the_model_that_serves_is_known_before_the_end(trial: TrialServer, model: ChatModel) -> None:
    meter = Meter()
    await read(model, meter, pieces=1)
    assert meter.model == MODELS[0]
