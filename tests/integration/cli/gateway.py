"""A gateway that says what a test tells it to, over real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from cli.local.ports import LOOPBACK


@dataclass
class ScriptedGateway:
    """What it answers, and what it was asked."""

    frames: Sequence[bytes] = ()
    """The chunks of the stream's body."""
    holds: bool = False
    """After the frames: keep the stream open until the run is stopped, then send `ending`."""
    ending: Sequence[bytes] = ()
    unheard: int = 0
    """For how many questions the connection breaks before there is any answer."""
    breaks: bool = False
    """After the frames the connection breaks, instead of ending in good order."""
    later: list[Sequence[bytes] | int] = field(default_factory=list)
    """What is answered each time somebody comes back to the run: chunks, or a status; 404 when there is no more."""
    deaf: bool = False
    """A run that is stopped goes on."""
    problem: tuple[int, dict[str, Any]] | None = None
    """A status and problem document, instead of any answer."""
    tree: str = ""
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    watched: list[tuple[str, str]] = field(default_factory=list)
    """Run and Last-Event-ID of each time somebody came back."""
    stopped: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    streaming: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(await request.json())
        self.headers.append(dict(request.headers))
        if self.problem is not None:
            return self._refuse()
        assert request.transport is not None
        if len(self.asked) <= self.unheard:
            request.transport.abort()
            return web.Response()
        response = await self._send(request, self.frames)
        self.streaming.set()
        if self.breaks:
            request.transport.abort()
        if self.holds:
            await self.released.wait()
            for frame in self.ending:
                await response.write(frame)
        return response

    async def watch(self, request: web.Request) -> web.StreamResponse:
        self.watched.append((request.match_info["run"], request.headers["Last-Event-ID"]))
        answer = self.later.pop(0) if self.later else 404
        if isinstance(answer, int):
            return web.json_response({"title": "non"}, status=answer, content_type="application/problem+json")
        return await self._send(request, answer)

    async def _send(self, request: web.Request, frames: Sequence[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for frame in frames:
            await response.write(frame)
        return response

    async def stop(self, request: web.Request) -> web.Response:
        self.stopped.append(request.match_info["run"])
        if not self.deaf:
            self.released.set()
        return web.Response(status=204)

    async def show_tree(self, request: web.Request) -> web.Response:
        self.paths.append(request.raw_path)
        if self.problem is not None:
            return self._refuse()
        return web.Response(text=self.tree, content_type="application/json")

    def _refuse(self) -> web.Response:
        assert self.problem is not None
        status, document = self.problem
        return web.json_response(document, status=status, content_type="application/problem+json")


@asynccontextmanager
async def serving(gateway: ScriptedGateway) -> AsyncIterator[ScriptedGateway]:
    """Serve it on a free port."""
    app = web.Application()
    app.router.add_post("/api/chat/stream", gateway.stream)
    app.router.add_get("/api/runs/{run}/events", gateway.watch)
    app.router.add_delete("/api/runs/{run}", gateway.stop)
    app.router.add_get("/api/conversations/{id}/tree", gateway.show_tree)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, LOOPBACK, 0)
        await site.start()
        gateway.url = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        yield gateway
    finally:
        gateway.released.set()
        await runner.cleanup()
