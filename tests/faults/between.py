"""A gateway with a proxy between it and the engines, for faults of that connection alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from cli.local.folder import DataFolder
from cli.local.health import http_ready
from cli.local.keys import read_keys
from cli.local.ports import LOOPBACK, free_port
from tests.faults.proxy import Proxy, proxying
from tests.faults.site import SECRET, Site
from tests.servers.process import spawned

START_SECONDS = 30.0


@asynccontextmanager
async def gateway_behind_proxy(site: Site) -> AsyncIterator[tuple[Proxy, httpx.AsyncClient]]:
    """The proxy to the first engine, and a client of a gateway that knows no other way to it."""
    host, _, engine_port = site.stack.grpc_addresses("engine")[0].rpartition(":")
    port = free_port()
    settings = {
        "INTERNAL_KEY": read_keys(DataFolder(site.stack.folder)).internal_keys["gateway"],
        "GATEWAY_PORT": str(port),
        "TREESTORE_ADDRESS": site.stack.grpc_addresses("treestore")[0],
        "QUOTA_ADDRESS": site.stack.grpc_addresses("quota")[0],
        "JWT_SECRET": SECRET,
    }
    async with (
        proxying((host, int(engine_port))) as proxy,
        spawned("gateway", {**settings, "ENGINE_ADDRESS": f"{LOOPBACK}:{proxy.port}"}) as (process, lines),
        httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{port}", timeout=60) as http,
    ):
        async with asyncio.timeout(START_SECONDS):
            while not await http_ready(port):
                assert process.returncode is None, "\n".join(lines)
                await asyncio.sleep(0.05)
        yield proxy, http
