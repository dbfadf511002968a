"""The gateway as the process it is in production."""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from cli.local.ports import free_port
from tests.integration.gateway.backend import Backend
from tests.servers.process import environment

START_SECONDS = 30.0


@dataclass
class Gateway:
    """A running gateway."""

    url: str
    process: asyncio.subprocess.Process
    lines: list[str]
    """What it has written so far."""

    def client(self, **options: object) -> httpx.AsyncClient:
        """A client of it."""
        return httpx.AsyncClient(base_url=self.url, timeout=20, **options)  # type: ignore[arg-type]

    @property
    def port(self) -> int:
        """Its port."""
        return int(self.url.rpartition(":")[2])


def settings_for(behind: Backend, internal_key: str, **more: str) -> dict[str, str]:
    """The settings of a gateway in front of these services."""
    addresses = {f"{name.upper()}_ADDRESS": address for name, address in behind.addresses.items()}
    return {**addresses, "INTERNAL_KEY": internal_key, "GATEWAY_PORT": str(free_port()), **more}


@asynccontextmanager
async def gateway(settings: Mapping[str, str]) -> AsyncIterator[Gateway]:
    """Run `python -m gateway` until it answers; kill it after. Fails with what it wrote when it ends instead."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway"),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    running = Gateway(f"http://127.0.0.1:{settings['GATEWAY_PORT']}", process, [])
    reading = asyncio.ensure_future(_read(process, running.lines))
    try:
        await _wait_answering(running)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def refused(settings: Mapping[str, str]) -> tuple[int, str]:
    """Run a gateway that doesn't come to serve: its exit code and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway"),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), START_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()


async def _read(process: asyncio.subprocess.Process, lines: list[str]) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        lines.append(line.decode().rstrip("\n"))


async def _wait_answering(running: Gateway) -> None:
    until = asyncio.get_running_loop().time() + START_SECONDS
    async with running.client() as client:
        while running.process.returncode is None:
            try:
                await client.get("/healthz")
            except httpx.TransportError:
                assert asyncio.get_running_loop().time() < until, "\n".join(running.lines)
                await asyncio.sleep(0.05)
            else:
                return
    raise AssertionError("it ended: " + "\n".join(running.lines))
