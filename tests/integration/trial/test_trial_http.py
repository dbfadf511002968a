"""The trial model speaks the OpenAI chat completion protocol, byte for byte."""

import json
from typing import Any

import httpx
import pytest

from cli.trial.completion import count_tokens
from cli.trial.server import TrialServer, serving

MODEL = "lintello-essai-small"
MESSAGES = [{"role": "user", "content": "C'est quoi le SEO ?"}]


def body(**more: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": MESSAGES, **more}


def frames(raw: bytes) -> list[dict[str, Any]]:
    """The JSON of each frame, after checking that the stream is exactly `data: {json}\\n\\n` … `data: [DONE]\\n\\n`."""
    *events, done, rest = raw.split(b"\n\n")
    assert (done, rest) == (b"data: [DONE]", b"")
    assert all(event.startswith(b"data: {") and b"\n" not in event for event in events)
    return [json.loads(event.removeprefix(b"data: ")) for event in events]


async def test_the_models_are_listed(client: httpx.AsyncClient) -> None:
    listed = (await client.get("models")).json()
    assert [model["id"] for model in listed["data"]] == [
        "lintello-essai-small",
        "lintello-essai-large",
        "lintello-essai-codestral",
        "lintello-essai-pixtral",
    ]


async def test_health_is_ok(client: httpx.AsyncClient, trial: TrialServer) -> None:
    assert (await client.get(trial.base_url.removesuffix("v1") + "healthz")).json() == {"status": "ok"}


async def test_a_whole_answer_counts_its_tokens(client: httpx.AsyncClient) -> None:
    answer = (await client.post("chat/completions", json=body())).json()
    completion = count_tokens(answer["choices"][0]["message"]["content"])
    prompt = count_tokens(MESSAGES[0]["content"]) + 4
    expected = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    assert answer["usage"] == expected


async def test_a_stream_says_the_same_as_a_whole_answer(client: httpx.AsyncClient) -> None:
    whole = (await client.post("chat/completions", json=body())).json()["choices"][0]["message"]["content"]
    streamed = frames((await client.post("chat/completions", json=body(stream=True))).content)
    assert "".join(frame["choices"][0]["delta"].get("content", "") for frame in streamed) == whole


async def test_a_stream_opens_with_the_role_and_ends_with_the_reason(client: httpx.AsyncClient) -> None:
    streamed = frames((await client.post("chat/completions", json=body(stream=True))).content)
    assert streamed[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert streamed[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": "stop"}]


async def test_a_stream_comes_in_many_pieces(client: httpx.AsyncClient) -> None:
    assert len(frames((await client.post("chat/completions", json=body(stream=True))).content)) > 50


async def test_usage_stands_in_the_last_piece_when_asked_for(client: httpx.AsyncClient) -> None:
    asked = body(stream=True, stream_options={"include_usage": True})
    *streamed, last = frames((await client.post("chat/completions", json=asked)).content)
    assert all(frame["usage"] is None for frame in streamed)
    assert last["choices"] == []
    assert last["usage"] == (await client.post("chat/completions", json=body())).json()["usage"]


async def test_usage_is_left_out_of_a_stream_otherwise(client: httpx.AsyncClient) -> None:
    streamed = frames((await client.post("chat/completions", json=body(stream=True))).content)
    assert not any("usage" in frame for frame in streamed)


async def test_a_limit_of_tokens_cuts_the_answer_and_says_so(client: httpx.AsyncClient) -> None:
    answer = (await client.post("chat/completions", json=body(max_tokens=5))).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 5


async def test_a_schema_asked_for_is_met(client: httpx.AsyncClient) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}}}
    form = {"type": "json_schema", "json_schema": {"name": "score", "schema": schema}}
    answer = (await client.post("chat/completions", json=body(response_format=form))).json()
    assert json.loads(answer["choices"][0]["message"]["content"]) == {"score": 0.5}


async def test_a_json_object_asked_for_is_one(client: httpx.AsyncClient) -> None:
    answer = (await client.post("chat/completions", json=body(response_format={"type": "json_object"}))).json()
    assert isinstance(json.loads(answer["choices"][0]["message"]["content"]), dict)


@pytest.mark.parametrize(
    ("content", "status", "param"),
    [
        (b"{not json", 400, None),
        (b"[]", 400, None),
        (b'{"model": "lintello-essai-small"}', 400, "messages"),
        (b'{"model": "lintello-essai-small", "messages": []}', 400, "messages"),
        (b'{"messages": [{"role": "user", "content": "a"}]}', 400, "model"),
        (b'{"model": "gpt-9", "messages": [{"role": "user", "content": "a"}]}', 404, "model"),
    ],
)
async def test_a_bad_call_gets_an_openai_error(
    client: httpx.AsyncClient, content: bytes, status: int, param: str | None
) -> None:
    answer = await client.post("chat/completions", content=content)
    error = answer.json()["error"]
    assert (answer.status_code, error["param"], error["type"]) == (status, param, "invalid_request_error")


async def test_a_connection_serves_one_call_after_another(client: httpx.AsyncClient, trial: TrialServer) -> None:
    before = trial.connections
    for _ in range(3):
        await client.post("chat/completions", json=body())
    assert trial.connections == before + 1


async def test_the_ledger_holds_header_names_and_no_header_values(
    client: httpx.AsyncClient, trial: TrialServer
) -> None:
    await client.post("chat/completions", json=body(), headers={"Authorization": "Bearer sesame"})
    url = trial.base_url.removesuffix("v1") + "control/calls"
    ledger = await client.get(url)
    assert "authorization" in ledger.json()[0]["header_names"]
    assert "sesame" not in ledger.text


async def test_the_ledger_tells_a_call_apart(client: httpx.AsyncClient, trial: TrialServer) -> None:
    await client.post("chat/completions", json=body(stream=True))
    (call,) = await trial.ended(1)
    assert (call.role, call.model, call.streamed, call.status, call.aborted) == (
        "conversation",
        MODEL,
        True,
        200,
        False,
    )
    assert call.completion_tokens > 50


async def test_a_paced_answer_has_the_same_pieces_as_one_without_delay(client: httpx.AsyncClient) -> None:
    asked = body(stream=True, max_tokens=20)
    at_once = frames((await client.post("chat/completions", json=asked)).content)
    async with serving(rate=400) as paced, httpx.AsyncClient(base_url=paced.base_url, trust_env=False) as other:
        in_time = frames((await other.post("chat/completions", json=asked)).content)
    assert [frame["choices"] for frame in in_time] == [frame["choices"] for frame in at_once]
