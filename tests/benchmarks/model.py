"""The model server of a benchmark, a process of its own, and the bare client that every figure is compared with."""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from kit.model.transport import open_client
from tests.e2e.shell import clean_environment

MODEL = "lintello-essai-small"
FOR_EVER = 1_000_000_000

Body = dict[str, Any]


@dataclass(frozen=True)
class Timed:
    """An answer as its reader saw it: seconds to its first piece and to its end, and the bytes of its text."""

    first: float
    whole: float
    size: int


@dataclass(frozen=True)
class Model:
    """A running trial model, asked without anything in between."""

    url: str
    http: httpx.AsyncClient
    """The HTTP client that the engine uses."""

    async def behave(self, *rules: Body) -> None:
        """Answer by the first of these rules that fits, until told otherwise; forget the calls until now."""
        lasting = [{"times": FOR_EVER, **rule} for rule in rules]
        (await self.http.put(f"{self._root}/control/faults", json=lasting)).raise_for_status()
        (await self.http.delete(f"{self._root}/control/calls")).raise_for_status()

    async def bodies(self) -> list[Body]:
        """The bodies of the calls since it was last told how to behave, in order."""
        calls = await self.http.get(f"{self._root}/control/calls")
        return [call["body"] for call in calls.json()]

    async def answer(self, message: str) -> Timed:
        """Ask for a streamed answer and read it."""
        return await self._read({"model": MODEL, "messages": [{"role": "user", "content": message}], "stream": True})

    async def in_turn(self, bodies: Sequence[Body]) -> None:
        """Make calls one after another; each answer is read and parsed."""
        for body in bodies:
            if body.get("stream"):
                await self._read(body)
            else:
                whole = await self.http.post(f"{self.url}/chat/completions", json=body)
                whole.raise_for_status()
                whole.json()

    async def _read(self, body: Body) -> Timed:
        # Lines cut and each chunk parsed: no program that shows an answer does less.
        began = time.perf_counter()
        first, size = 0.0, 0
        async with self.http.stream("POST", f"{self.url}/chat/completions", json=body) as response:
            response.raise_for_status()
            async for line in response.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                for choice in json.loads(line[6:])["choices"]:
                    if text := choice["delta"].get("content"):
                        first = first or time.perf_counter() - began
                        size += len(text.encode())
        return Timed(first, time.perf_counter() - began, size)

    @property
    def _root(self) -> str:
        return self.url.removesuffix("/v1")


@asynccontextmanager
async def serving() -> AsyncIterator[Model]:
    """A trial model without delay, under control."""
    command = (sys.executable, "-m", "cli.trial", "--rate", "0", "--control")
    process = await asyncio.create_subprocess_exec(
        *command, env=clean_environment(), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        async with open_client(url, None) as http:
            yield Model(url, http)
    finally:
        process.terminate()
        await process.wait()
