"""A service that is away for a while."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from tests.integration.gateway.backend import Backend


@asynccontextmanager
async def away(name: str, behind: Backend, client: httpx.AsyncClient) -> AsyncIterator[None]:
    """Its calls are cut and its port closed until the end of the block, which waits until the gateway has it back."""
    await behind.stop(name)
    try:
        yield
    finally:
        await behind.start(name)
        async with asyncio.timeout(10):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.05)
