"""Every fault a rule can name is seen from the client's side of the socket."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from cli.trial.server import TrialServer

ASKED: dict[str, Any] = {
    "model": "lintello-essai-small",
    "messages": [{"role": "user", "content": "C'est quoi le SEO ?"}],
}


def once(**action: Any) -> list[dict[str, Any]]:
    return [{"action": action}]


async def post(client: httpx.AsyncClient, **more: Any) -> httpx.Response:
    return await client.post("chat/completions", json={**ASKED, **more})


async def raw_exchange(trial: TrialServer, *, stream: bool) -> list[bytes]:
    """The response as its HTTP chunks (or its body, when it has a length), read from a plain socket."""
    content = json.dumps({**ASKED, "stream": stream}).encode()
    reader, writer = await open_socket(trial, content)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        if b"chunked" not in head.lower():
            return [await reader.read()]
        chunks = []
        while size := int(await reader.readline(), 16):
            chunks.append(await reader.readexactly(size))
            await reader.readline()
        return chunks
    finally:
        writer.close()
        await writer.wait_closed()


async def open_socket(trial: TrialServer, content: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    port = int(trial.base_url.removesuffix("/v1").rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    writer.write(head.encode() + content)
    return reader, writer


@pytest.mark.parametrize("value", ["3", "Wed, 21 Oct 2037 07:28:00 GMT", "-5", "soon"])
async def test_a_status_comes_with_any_header(client: httpx.AsyncClient, trial: TrialServer, value: str) -> None:
    trial.set_faults(once(status=429, headers={"Retry-After": value}))
    answer = await post(client)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, value)
    assert answer.json()["error"]["type"] == "server_error"


async def test_a_status_may_have_a_body_of_its_own(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(status=502, body="<html>", headers={"Content-Type": "text/html"}))
    answer = await post(client)
    assert (answer.text, answer.headers["content-type"]) == ("<html>", "text/html")


@pytest.mark.parametrize("where", ["before", "headers", "middle"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_hang_lasts_until_the_client_leaves(
    client: httpx.AsyncClient, trial: TrialServer, where: str, stream: bool
) -> None:
    trial.set_faults(once(hang=where))
    with pytest.raises(httpx.ReadTimeout):
        await client.post("chat/completions", json={**ASKED, "stream": stream}, timeout=0.2)
    (call,) = await trial.ended(1)
    assert call.aborted
    assert call.status == (None if where == "before" else 200)


@pytest.mark.parametrize("where", ["before", "middle"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_cut_breaks_the_connection(
    client: httpx.AsyncClient, trial: TrialServer, where: str, stream: bool
) -> None:
    trial.set_faults(once(cut=where))
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await post(client, stream=stream)
    (call,) = await trial.ended(1)
    assert not call.aborted


async def test_a_cut_in_the_middle_lets_the_first_half_through(trial: TrialServer) -> None:
    trial.set_faults(once(cut="middle", chunks=["un ", "deux ", "trois ", "quatre "]))
    reader, writer = await open_socket(trial, json.dumps({**ASKED, "stream": True}).encode())
    received = await reader.readuntil(b"un ")
    with pytest.raises(ConnectionResetError):
        await reader.readuntil(b"quatre ")
    writer.close()
    assert received.startswith(b"HTTP/1.1 200")


async def test_a_stream_may_end_without_done(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(no_done=True))
    content = (await post(client, stream=True)).content
    assert b"[DONE]" not in content
    assert b'"finish_reason":"stop"' in content


async def test_a_stream_may_end_without_a_reason(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(no_finish=True))
    assert b'"finish_reason":"stop"' not in (await post(client, stream=True)).content


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_may_come_with_status_200(client: httpx.AsyncClient, trial: TrialServer, stream: bool) -> None:
    trial.set_faults(once(error_in_200=True))
    answer = await post(client, stream=stream)
    assert answer.status_code == 200
    assert b'{"error":{' in answer.content
    assert b'"finish_reason":"stop"' not in answer.content


async def test_an_error_frame_may_follow_some_content(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(error_in_200=True, chunks=["début"]))
    content = (await post(client, stream=True)).content
    assert content.index("début".encode()) < content.index(b'{"error":{')


@pytest.mark.parametrize("stream", [False, True])
async def test_a_broken_frame_is_no_json(client: httpx.AsyncClient, trial: TrialServer, stream: bool) -> None:
    trial.set_faults(once(broken_frame=True))
    content = (await post(client, stream=stream)).content
    events = [event.removeprefix(b"data: ") for event in content.split(b"\n\n") if event and b"[DONE]" not in event]
    broken = 0
    for event in events:
        try:
            json.loads(event)
        except json.JSONDecodeError:
            broken += 1
    assert broken == 1


async def test_split_bytes_arrive_one_at_a_time(trial: TrialServer) -> None:
    trial.set_faults(once(split_bytes=True, text="é"))
    chunks = await raw_exchange(trial, stream=True)
    assert {len(chunk) for chunk in chunks} == {1}
    assert "é".encode() in b"".join(chunks)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_invalid_byte_stands_in_the_text(client: httpx.AsyncClient, trial: TrialServer, stream: bool) -> None:
    trial.set_faults(once(invalid_byte=True, text="abcd"))
    assert b'"content":"ab\xffcd"' in (await post(client, stream=stream)).content


async def test_a_text_is_sent_exactly(client: httpx.AsyncClient, trial: TrialServer) -> None:
    text = "<think>a\u2028b</think>\n  voilà\ud800"
    trial.set_faults(once(text=text))
    answer = await post(client, max_tokens=1)
    assert "\u2028".encode() in answer.content
    assert answer.json()["choices"][0]["message"]["content"] == text


async def test_pieces_are_sent_exactly(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(chunks=["<th", "ink>", "", "a"]))
    content = (await post(client, stream=True)).content
    sent = [json.loads(event[6:])["choices"][0]["delta"].get("content") for event in content.split(b"\n\n")[1:-3]]
    assert sent == ["<th", "ink>", "", "a"]


@pytest.mark.parametrize("stream", [False, True])
async def test_reasoning_has_a_field_of_its_own(client: httpx.AsyncClient, trial: TrialServer, stream: bool) -> None:
    trial.set_faults(once(reasoning="hm", text="oui"))
    content = (await post(client, stream=stream)).content
    assert b'"reasoning_content":"hm"' in content
    assert b'"content":"oui"' in content


@pytest.mark.parametrize("stream", [False, True])
async def test_usage_may_be_missing(client: httpx.AsyncClient, trial: TrialServer, stream: bool) -> None:
    trial.set_faults(once(usage=None))
    answer = await post(client, stream=stream, stream_options={"include_usage": True})
    assert b'"usage"' not in answer.content


async def test_usage_may_be_anything(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(usage={"prompt_tokens": -1}))
    assert (await post(client)).json()["usage"] == {"prompt_tokens": -1}


async def test_a_delay_comes_before_the_answer(client: httpx.AsyncClient, trial: TrialServer) -> None:
    trial.set_faults(once(delay_ms=60_000))
    with pytest.raises(httpx.ReadTimeout):
        await client.post("chat/completions", json=ASKED, timeout=0.2)


async def test_a_client_leaving_a_paced_stream_is_noticed_within_100_ms(
    client: httpx.AsyncClient, trial: TrialServer
) -> None:
    trial.set_faults(once(rate=1))
    asked = {**ASKED, "stream": True}
    loop_time = asyncio.get_running_loop().time
    async with client.stream("POST", "chat/completions", json=asked) as answer:
        await anext(answer.aiter_bytes())
        left_at = loop_time()
    (call,) = await trial.ended(1)
    assert call.aborted_at is not None
    assert call.aborted_at - left_at < 0.1


async def test_rules_come_and_go_over_http(client: httpx.AsyncClient, trial: TrialServer) -> None:
    control = trial.base_url.removesuffix("v1") + "control/faults"
    await client.put(control, json=[{"times": 2, "action": {"status": 500}}])
    assert (await post(client)).status_code == 500
    await client.delete(control)
    assert (await post(client)).status_code == 200


async def test_a_wrong_rule_is_refused_over_http(client: httpx.AsyncClient, trial: TrialServer) -> None:
    answer = await client.put(trial.base_url.removesuffix("v1") + "control/faults", json=[{"action": {"nope": 1}}])
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_rule")
