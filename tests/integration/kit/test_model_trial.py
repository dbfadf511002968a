"""The chat client against the trial model, a whole chat server that misbehaves on command."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest

from cli.trial.request import MODELS
from cli.trial.server import TrialServer, serving
from kit.model import ChatModel, ChatRequest, Completion, End, Message, ModelError, ModelErrorReason, Piece

REQUEST = ChatRequest(MODELS[0], [Message("user", "Comment financer une coopérative d'été ?")])


@pytest.fixture(scope="module")
async def trial() -> AsyncGenerator[TrialServer, None]:
    async with serving() as server:
        yield server


@pytest.fixture
async def model(trial: TrialServer) -> AsyncGenerator[ChatModel, None]:
    trial.reset()
    caller = ChatModel(trial.base_url, None, max_attempts=1, timeout=0.5, idle_timeout=0.5)
    yield caller
    await caller.aclose()


def misbehave(trial: TrialServer, **action: Any) -> None:
    trial.set_faults([{"match": {}, "times": 9, "action": action}])


async def ask(model: ChatModel, way: str) -> tuple[str, Completion | End]:
    """The text of an answer, whole or streamed, and what came with it."""
    if way == "chat":
        completion = await model.chat(REQUEST)
        return completion.text, completion
    text = ""
    async with aclosing(model.stream(REQUEST)) as items:
        async for item in items:
            if isinstance(item, End):
                return text, item
            assert isinstance(item, Piece)
            text += item.text
    raise AssertionError("the stream ended without an End")


ways = pytest.mark.parametrize("way", ["chat", "stream"])


@ways
async def test_an_answer_comes_with_the_servers_usage(model: ChatModel, way: str) -> None:
    text, end = await ask(model, way)
    assert text.strip()
    assert not end.usage.estimated


@ways
@pytest.mark.parametrize("fault", [{"split_bytes": True}, {"no_done": True}, {"reasoning": "SECRET"}])
async def test_an_odd_answer_is_still_whole(
    trial: TrialServer, model: ChatModel, way: str, fault: dict[str, Any]
) -> None:
    misbehave(trial, text="Voilà l'été : 😀", **fault)
    assert (await ask(model, way))[0] == "Voilà l'été : 😀"


@ways
async def test_an_invalid_byte_is_one_replacement(trial: TrialServer, model: ChatModel, way: str) -> None:
    misbehave(trial, text="abcdef", invalid_byte=True)
    text, _ = await ask(model, way)
    assert (text.count("\ufffd"), text.replace("\ufffd", "")) == (1, "abcdef")


@ways
@pytest.mark.parametrize(
    ("fault", "reasons"),
    [
        ({"status": 503}, {ModelErrorReason.UNAVAILABLE}),
        ({"status": 401}, {ModelErrorReason.REFUSED}),
        ({"hang": "before"}, {ModelErrorReason.TIMEOUT}),
        ({"hang": "headers"}, {ModelErrorReason.TIMEOUT}),
        ({"hang": "middle"}, {ModelErrorReason.TIMEOUT}),
        ({"cut": "before"}, {ModelErrorReason.UNAVAILABLE}),
        ({"cut": "middle"}, {ModelErrorReason.UNAVAILABLE, ModelErrorReason.INTERRUPTED}),
        ({"error_in_200": True}, {ModelErrorReason.MALFORMED}),
        ({"broken_frame": True}, {ModelErrorReason.MALFORMED}),
        ({"text": ""}, {ModelErrorReason.MALFORMED}),
        ({"text": "<think>SECRET"}, {ModelErrorReason.MALFORMED}),
    ],
)
async def test_a_fault_is_an_error_and_never_an_empty_success(
    trial: TrialServer, model: ChatModel, way: str, fault: dict[str, Any], reasons: set[ModelErrorReason]
) -> None:
    misbehave(trial, **fault)
    with pytest.raises(ModelError) as failure:
        await ask(model, way)
    assert failure.value.reason in reasons


async def test_the_models_are_listed(model: ChatModel) -> None:
    assert await model.models() == list(MODELS)
