"""The product of a benchmark, `lintello up` with the benchmark's model, asked as a client of the gateway does."""

import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from kit.model.transport import open_client
from tests.benchmarks.model import Model, Timed
from tests.e2e.shell import Up, let_servers_in, running

PARTS = {"services.engine": "engine", "gateway": "gateway"}
"""The processes that every piece of an answer goes through, by the module they run."""


@dataclass(frozen=True)
class Product:
    """A running stack."""

    up: Up
    http: httpx.AsyncClient
    """The same HTTP client as the model's, so that what reading costs is the same."""

    async def answer(self, message: str, **fields: str) -> Timed:
        """Ask over server-sent events and read to the end; each event is parsed."""
        return await self.read({"message": message, **fields}, [])

    async def think(self, message: str) -> bool:
        """Ask for a think and read it; False when it became a classic answer for want of a slot."""
        kinds: list[str] = []
        await self.read({"message": message, "mode": "recherche", "thinking": "on"}, kinds)
        return "thinking_completed" in kinds

    async def read(self, body: dict[str, str], kinds: list[str]) -> Timed:
        """Ask, and put the type of every event into `kinds` as it comes."""
        began = time.perf_counter()
        first, size = 0.0, 0
        async with self.http.stream("POST", f"{self.up.url}/api/chat/stream", json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                event = json.loads(line[6:])
                kinds.append(event["type"])
                if event["type"] == "content":
                    first = first or time.perf_counter() - began
                    size += len(event["content"].encode())
        return Timed(first, time.perf_counter() - began, size)

    def resident(self) -> dict[str, int]:
        """Bytes of memory that engine and gateway hold now."""
        return {name: process.memory_info().rss for name, process in self.processes().items()}

    def processes(self) -> dict[str, psutil.Process]:
        """Engine and gateway."""
        found = {PARTS.get(process.cmdline()[-1], ""): process for process in self.up.family() if process.cmdline()}
        return {name: found[name] for name in PARTS.values()}


@asynccontextmanager
async def product(model: Model) -> AsyncIterator[Product]:
    """A stack in a new folder, with room for 200 thinks at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        let_servers_in(folder)
        settings = {"LINTELLO_LLM_BASE_URL": model.url, "LINTELLO_MAX_THINKS_CONCURRENT": "200"}
        async with running(folder / "data", **settings) as up, open_client(up.url, None) as http:
            # The gateway closes connections that are idle for 5 s, maybe just as they are used again.
            http.headers["Connection"] = "close"
            yield Product(up, http)
