"""Calls that are given up: FAULTS 16 and 17, seen from the server."""

import asyncio
import resource
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing

import pytest

from kit.model import ChatModel, ChatRequest, Message, Piece
from tests.servers.raw import (
    Connection,
    RawServer,
    Script,
    chunk,
    completion,
    frame,
    http_chunk,
    raw_server,
    response,
    silence,
    stream,
)

REQUEST = ChatRequest("small", [Message("user", "Bonjour")])
FINE = completion("Bonjour", usage={"prompt_tokens": 3, "completion_tokens": 2})


@pytest.fixture
async def server() -> AsyncGenerator[RawServer, None]:
    async with raw_server() as raw:
        yield raw


@pytest.fixture
async def model(server: RawServer) -> AsyncGenerator[ChatModel, None]:
    caller = ChatModel(server.base_url, None)
    yield caller
    await caller.aclose()


@pytest.fixture
def many_files() -> Generator[None, None, None]:
    """Both ends of hundreds of connections are open in this process; the usual limit may be 256 or 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def pour(connection: Connection) -> None:
    while True:
        await connection.send(http_chunk(frame(chunk("encore "))))


async def follow(model: ChatModel) -> None:
    async with aclosing(model.stream(REQUEST)) as items:
        async for _ in items:
            pass


async def cancel(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(result) for result in results} == {asyncio.CancelledError}


@pytest.mark.parametrize("then", [silence, pour])
async def test_closing_a_stream_closes_its_socket_within_a_second(
    server: RawServer, model: ChatModel, then: Script
) -> None:
    server.play(stream(frame(chunk("Oui")), then=then))
    async with aclosing(model.stream(REQUEST)) as items:
        assert await anext(items) == Piece("Oui")
        assert server.open == 1
    await server.until(lambda: server.open == 0, seconds=1)


@pytest.mark.parametrize("script", [silence, stream(then=silence), stream(frame(chunk("Oui")), then=silence)])
async def test_cancelling_a_stream_closes_its_socket_within_a_second(
    server: RawServer, model: ChatModel, script: Script
) -> None:
    server.play(script)
    task = asyncio.create_task(follow(model))
    await server.until(lambda: len(server.requests) == 1, seconds=5)
    await asyncio.sleep(0.05)
    await cancel(task)
    await server.until(lambda: server.open == 0, seconds=1)


async def test_cancelling_a_call_closes_its_socket_within_a_second(server: RawServer, model: ChatModel) -> None:
    server.play(silence)
    task = asyncio.create_task(model.chat(REQUEST))
    await server.until(lambda: len(server.requests) == 1, seconds=5)
    await cancel(task)
    await server.until(lambda: server.open == 0, seconds=1)


async def test_a_call_is_cancelled_while_it_waits_to_try_again(server: RawServer, model: ChatModel) -> None:
    server.play(response(b"", "429 Slow", retry_after="20"))
    task = asyncio.create_task(model.chat(REQUEST))
    await server.until(lambda: len(server.requests) == 1, seconds=5)
    await asyncio.sleep(0.05)
    await cancel(task)
    assert len(server.requests) == 1


@pytest.mark.usefixtures("many_files")
async def test_after_500_cancelled_calls_the_next_100_succeed(server: RawServer, model: ChatModel) -> None:
    server.play(silence)

    def hundred() -> list[asyncio.Task[object]]:
        calls: list[asyncio.Task[object]] = [asyncio.create_task(model.chat(REQUEST)) for _ in range(50)]
        return calls + [asyncio.create_task(follow(model)) for _ in range(50)]

    for waiting in (100, 200, 300, 400):
        tasks = hundred()
        await server.until(lambda arrived=waiting: len(server.requests) >= arrived, 20)  # type: ignore[misc]
        await cancel(*tasks)
    connecting = hundred()
    await asyncio.sleep(0)
    await cancel(*connecting)
    await server.until(lambda: server.open == 0, seconds=5)
    server.play(FINE)
    answers = await asyncio.gather(*(model.chat(REQUEST) for _ in range(100)))
    assert [answer.text for answer in answers] == ["Bonjour"] * 100


@pytest.mark.usefixtures("many_files")
async def test_500_calls_at_once_succeed(server: RawServer, model: ChatModel) -> None:
    server.play(FINE)
    answers = await asyncio.gather(*(model.chat(REQUEST) for _ in range(500)))
    assert len(answers) == 500


async def test_closing_the_model_closes_its_idle_connections(server: RawServer) -> None:
    server.play(FINE)
    model = ChatModel(server.base_url, None)
    await model.chat(REQUEST)
    assert server.open == 1
    await model.aclose()
    await server.until(lambda: server.open == 0, seconds=1)
