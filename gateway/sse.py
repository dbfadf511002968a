"""Server-sent events: a run's events written to one reader, until the last or until the reader has gone.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime

import anyio
import grpc
import orjson
from lintello.engine.v1 import engine_pb2 as pb
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.events import event_from_wire, farewell
from gateway.languages import Locale
from gateway.metrics import Metrics
from gateway.wire import Json
from gateway.wording import CUT_SHORT
from kit.errors import RemoteError

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)

# Line separators to some readers, though not to the standard; inside a JSON text the escape means the same.
SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


def frame(event: Json) -> bytes:
    """One event as it goes over the line: an id line and one data line."""
    data = orjson.dumps(event)
    for separator, escape in SEPARATORS:
        if separator in data:
            data = data.replace(separator, escape)
    return b"id: %d\ndata: %b\n\n" % (event["seq"], data)


class EventStream(Response):
    """The answer to a request for a run's events."""

    media_type = "text/event-stream"

    def __init__(
        self,
        first: pb.ThinkingEvent,
        events: AsyncGenerator[pb.ThinkingEvent, None],
        locale: Locale,
        closing: asyncio.Event,
        metrics: Metrics,
        keep_alive: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        """`events` follow `first` and are closed here. When `closing` is set, the stream ends as if they broke off.

        `keep_alive` is the time between two comments, in seconds.
        """
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._first = first
        self._events = events
        self._locale = locale
        self._closing = closing
        self._metrics = metrics
        self._keep_alive = keep_alive
        self._seq = 0
        self._thinking = False
        self._finished = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the events. The run isn't stopped when the reader goes: only the call that carries them ends."""
        try:
            with self._metrics.stream_open():
                await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                async with anyio.create_task_group() as group:
                    group.start_soon(_cancel_when_gone, receive, group.cancel_scope)
                    group.start_soon(self._stay_alive, send)
                    await self._write(send)
                    group.cancel_scope.cancel()
        finally:
            # Without the shield a cancelled request would cancel this very clean-up.
            with anyio.CancelScope(shield=True):
                await self._events.aclose()

    async def _write(self, send: Send) -> None:
        code, retryable = "unavailable", True
        async with anyio.create_task_group() as group:
            group.start_soon(_cancel_when_set, self._closing, group.cancel_scope)
            try:
                await self._forward(send)
            except RemoteError as error:
                if error.code not in AWAY:
                    code, retryable = "internal", False
            group.cancel_scope.cancel()
        if not self._finished:
            for event in self._farewell({"code": code, "message": CUT_SHORT[self._locale], "retryable": retryable}):
                await _write(send, frame(event))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _forward(self, send: Send) -> None:
        await self._send_event(send, self._first)
        async for event in self._events:
            await self._send_event(send, event)
            if self._finished:
                return

    async def _send_event(self, send: Send, event: pb.ThinkingEvent) -> None:
        self._seq = event.seq
        self._thinking = self._thinking or event.HasField("thinking_started")
        self._finished = event.HasField("done")
        known = event_from_wire(event)
        if known is not None:
            await _write(send, frame(known))

    def _farewell(self, error: Json) -> list[Json]:
        conversation = self._first.run_started.conversation_id
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return farewell(self._first.run_id, conversation, self._seq, at, self._thinking, error)

    async def _stay_alive(self, send: Send) -> None:
        while True:
            await anyio.sleep(self._keep_alive)
            await _write(send, KEEP_ALIVE)


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _cancel_when_set(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
