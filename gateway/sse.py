"""Server-sent events: a run's events written to one reader, until the last or until the reader has gone.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.events import event_from_wire
from gateway.following import Following
from gateway.metrics import Metrics
from gateway.wire import Json
from kit import telemetry
from kit.errors import RemoteError

KEEP_ALIVE_SECONDS = 15.0
KEEP_ALIVE = b": keep-alive\n\n"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

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
    """The answer to a request for a run's events.

    It ends with the run's last event. When the run can't be followed on, it ends without `done`, and nothing is made
    up: its reader comes back with the number of the last event, and is told then how the run is.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: Following,
        closing: asyncio.Event,
        metrics: Metrics,
        keep_alive: float = KEEP_ALIVE_SECONDS,
    ) -> None:
        """`events` are closed here. When `closing` is set, the stream ends as if the run couldn't be followed on.

        `keep_alive` is the time between two comments, in seconds.
        """
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._events = events
        self._closing = closing
        self._metrics = metrics
        self._keep_alive = keep_alive

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
        async with until_set(self._closing):
            try:
                async for event in self._events:
                    known = event_from_wire(event)
                    if known is not None:
                        await _write(send, frame(known))
            except RemoteError as error:
                telemetry.log.warning("stream_cut", code=error.code.name, reason=error.reason)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _stay_alive(self, send: Send) -> None:
        while True:
            await anyio.sleep(self._keep_alive)
            await _write(send, KEEP_ALIVE)


@asynccontextmanager
async def until_set(event: asyncio.Event) -> AsyncIterator[None]:
    """Leave the block, wherever it is, when the event is set."""
    async with anyio.create_task_group() as group:
        group.start_soon(_cancel_when_set, event, group.cancel_scope)
        yield
        group.cancel_scope.cancel()


async def _write(send: Send, body: bytes) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _cancel_when_set(event: asyncio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
