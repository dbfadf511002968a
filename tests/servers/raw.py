"""An HTTP server of which every byte is the test's: it reads requests and plays one script for each."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """One request as it arrived; header names in lower case."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Connection:
    """What a script may do with the connection its request came on."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def wait_for_client_to_leave(self) -> None:
        """Sends nothing until the client closes its end."""
        while await self._reader.read(1024):
            pass

    def close(self) -> None:
        self._writer.close()

    def reset(self) -> None:
        self._writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


class RawServer:
    """Plays its scripts in turn, the last one again and again."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.open = 0
        self.base_url = ""
        self._scripts: list[Script] = []
        self._changed = asyncio.Condition()

    def play(self, *scripts: Script) -> None:
        self._scripts = list(scripts)

    async def until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Waits until something seen from the server holds; raises TimeoutError after so many seconds."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(holds)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                await self._tell()
                script = self._scripts.pop(0) if len(self._scripts) > 1 else self._scripts[0]
                await script(Connection(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()
            await self._tell()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


@asynccontextmanager
async def raw_server(tls: ssl.SSLContext | None = None) -> AsyncGenerator[RawServer, None]:
    raw = RawServer()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(raw.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, backlog=1024)
    raw.base_url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield raw
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Request(head[0], headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def response(body: bytes, status: str = "200 OK", **headers: str) -> Script:
    """A whole response; `retry_after="3"` is the header Retry-After."""
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    data = ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    async def script(connection: Connection) -> None:
        await connection.send(data)

    return script


def completion(content: Any, *, usage: Any = None, **message: Any) -> Script:
    """A chat completion with this content."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return response(json.dumps({"model": "served-1", "choices": [choice], "usage": usage}).encode())


def chunk(content: Any = None, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    """The object of one frame of a stream."""
    choice = {"index": 0, "delta": {"content": content, **delta}, "finish_reason": finish}
    return {"model": "served-1", "choices": [choice]}


def frame(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_END = b"0\r\n\r\n"


def http_chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def stream(*chunks: bytes, then: Callable[[Connection], Awaitable[None]] | None = None) -> Script:
    """A stream of these chunks of bytes, each sent on its own; then its proper end, or what `then` does instead."""

    async def script(connection: Connection) -> None:
        await connection.send(STREAM_HEAD)
        for data in chunks:
            await connection.send(http_chunk(data))
            await asyncio.sleep(0)
        if then is None:
            await connection.send(STREAM_END)
        else:
            await then(connection)

    return script


async def silence(connection: Connection) -> None:
    """No answer at all, until the client leaves."""
    await connection.wait_for_client_to_leave()


async def reset(connection: Connection) -> None:
    """The connection is reset, a moment after what was sent before: a reset may overtake it."""
    await asyncio.sleep(0.05)
    connection.reset()
