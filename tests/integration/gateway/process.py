"""The gateway as the process it is in production."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx

from cli.local.ports import free_port
from tests.integration.gateway.backend import Backend
from tests.servers.process import START_SECONDS, spawned


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
    async with spawned("gateway", settings) as (process, lines):
        running = Gateway(f"http://127.0.0.1:{settings['GATEWAY_PORT']}", process, lines)
        await _wait_answering(running)
        yield running


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
