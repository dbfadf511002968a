"""What is refused at the door, and how."""

import asyncio
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.gateway.backend import Backend
from tests.integration.gateway.process import Gateway
from tests.integration.gateway.scripts import DONE, STARTED, plays

URL = "/api/chat/stream"
JSON = {"Content-Type": "application/json"}


async def chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 65_536):
        yield b"x" * 65_536


def assert_problem(response: httpx.Response, status: int, reason: str) -> None:
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert (response.status_code, document["status"], document["reason"]) == (status, status, reason)
    assert {"type", "title", "status", "detail", "reason", "errors"} <= set(document)


@pytest.mark.parametrize("field", ["files", "web_context", "stream_nodes", "massage"])
async def test_an_unknown_field_is_refused_by_its_name(client: httpx.AsyncClient, field: str) -> None:
    response = await client.post(URL, json={"message": "?", field: []})
    assert_problem(response, 400, "INVALID_ARGUMENT")
    assert response.json()["errors"] == [{"field": field, "message": "unknown field"}]


async def test_a_missing_message_is_named(client: httpx.AsyncClient) -> None:
    response = await client.post(URL, json={})
    assert response.json()["errors"] == [{"field": "message", "message": "this field is needed"}]


async def test_a_value_that_is_none_of_those_there_are_is_refused_without_an_echo(client: httpx.AsyncClient) -> None:
    response = await client.post(URL, json={"message": "?", "thinking": "canary"})
    assert_problem(response, 400, "INVALID_ARGUMENT")
    assert "canary" not in response.text


async def test_what_is_wrong_with_a_field_is_said_in_french_by_default(dev_gateway: Gateway) -> None:
    async with dev_gateway.client() as client:
        response = await client.post(URL, json={"message": "?", "thinking": "maybe"})
    assert response.json()["title"] == "La demande n'est pas valable"
    assert response.json()["errors"][0]["message"] == "doit être 'auto', 'on' ou 'off'"


@pytest.mark.parametrize("body", [b"{", b'{"message": "\xff"}', b"[" * 100_000, b'"text"', b"[]", b"null", b"1"])
async def test_a_body_that_is_no_question_is_400(client: httpx.AsyncClient, body: bytes) -> None:
    assert_problem(await client.post(URL, content=body, headers=JSON), 400, "INVALID_ARGUMENT")


async def test_a_body_that_does_not_call_itself_json_is_415(client: httpx.AsyncClient) -> None:
    response = await client.post(URL, content=b'{"message": "?"}', headers={"Content-Type": "text/plain"})
    assert_problem(response, 415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_body_of_10_mb_is_413(client: httpx.AsyncClient) -> None:
    body = json.dumps({"message": "x" * 10_000_000}).encode()
    assert_problem(await client.post(URL, content=body, headers=JSON), 413, "TOO_LARGE")


async def test_a_body_of_10_mb_in_pieces_is_413(client: httpx.AsyncClient) -> None:
    assert_problem(await client.post(URL, content=chunks(10_000_000), headers=JSON), 413, "TOO_LARGE")


async def test_a_large_body_is_refused_before_it_is_sent(dev_gateway: Gateway) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", dev_gateway.port)
    head = f"POST {URL} HTTP/1.1\r\nHost: 127.0.0.1:{dev_gateway.port}\r\nContent-Length: 99999999\r\n\r\n"
    writer.write(head.encode())
    assert b" 413 " in await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    await writer.wait_closed()


async def test_a_message_past_256_kib_is_413_before_the_engine_is_asked(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    response = await client.post(URL, json={"message": "é" * 131_073})
    assert_problem(response, 413, "TOO_LARGE")
    assert behind.engine.asked == []


async def test_a_message_of_256_kib_is_asked(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(STARTED, DONE)
    assert (await client.post(URL, json={"message": "é" * 131_072})).status_code == 200


async def test_nul_and_lone_surrogates_are_cleaned_before_the_engine_sees_them(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(STARTED, DONE)
    response = await client.post(URL, content=rb'{"message": "a\u0000b\ud800\u2028"}', headers=JSON)
    assert response.status_code == 200
    assert behind.engine.asked[0][1].message == "ab\ufffd\u2028"


@pytest.mark.parametrize("path", ["/nothing", "/api/plans", "/api/documents", "/web/nothing.js", "/web/..%2fapp.py"])
async def test_what_is_not_there_is_a_404_problem(client: httpx.AsyncClient, path: str) -> None:
    assert_problem(await client.get(path), 404, "NOT_FOUND")


@pytest.mark.parametrize("url", ["/api/chat/stream", "/api/chat", "/api/runs"])
@pytest.mark.parametrize("key", ["", "k" * 201, "clé", "a\tb"], ids=["empty", "long", "é", "tab"])
async def test_an_idempotency_key_that_is_none_is_refused_by_its_name_before_the_engine_is_asked(
    client: httpx.AsyncClient, behind: Backend, url: str, key: str
) -> None:
    response = await client.post(url, json={"message": "?"}, headers=[(b"Idempotency-Key", key.encode())])
    assert_problem(response, 400, "INVALID_ARGUMENT")
    assert [error["field"] for error in response.json()["errors"]] == ["Idempotency-Key"]
    assert behind.engine.asked == []


async def test_two_idempotency_keys_are_refused(client: httpx.AsyncClient) -> None:
    headers = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    response = await client.post(URL, json={"message": "?"}, headers=headers)
    assert response.json()["errors"] == [{"field": "Idempotency-Key", "message": "one is enough"}]


@pytest.mark.parametrize("url", ["/api/chat/stream", "/api/chat", "/api/runs"])
@pytest.mark.parametrize("key", ["k", "~" * 200, 'a key, with "signs"'], ids=["one", "200", "signs"])
async def test_an_idempotency_key_reaches_the_engine(
    client: httpx.AsyncClient, behind: Backend, url: str, key: str
) -> None:
    behind.engine.script = plays(STARTED, DONE)
    assert (await client.post(url, json={"message": "?"}, headers={"Idempotency-Key": key})).status_code < 300
    assert behind.engine.asked[0][1].idempotency_key == key


async def test_a_method_that_is_not_there_is_a_405_problem_that_names_those_that_are(client: httpx.AsyncClient) -> None:
    response = await client.put(URL)
    assert_problem(response, 405, "METHOD_NOT_ALLOWED")
    assert response.headers["allow"] == "POST"


async def test_no_refusal_logs_what_was_sent(client: httpx.AsyncClient, dev_gateway: Gateway) -> None:
    await client.post(URL, json={"message": "?", "thinking": "canary-5171"})
    await client.post(URL, content=b'{"message": "canary-5171', headers=JSON)
    await client.get("/api/conversations/canary-5171?cursor=canary-5171")
    assert not any("canary-5171" in line for line in dev_gateway.lines)
