"""A whole stack of real processes whose model, servers, connections and processes all fail on command."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import asyncpg
import grpc
import httpx
import psutil
from lintello.quota.v1 import quota_pb2, quota_pb2_grpc
from redis.asyncio import Redis

from cli.local.folder import DataFolder
from cli.local.keys import read_keys
from cli.local.ports import LOOPBACK
from cli.local.postgres import EmbeddedPostgres
from cli.local.stack import Stack, StackOptions
from cli.local.valkey import EmbeddedValkey
from cli.trial.ledger import Call
from cli.trial.server import TrialServer, serving
from gateway.tokens import mint_user_token
from kit.identity import Caller, Signer
from tests.e2e.client import User, bearer
from tests.faults.processes import Processes, servers
from tests.faults.proxy import Proxy, proxying
from tests.faults.reader import Reader
from tests.faults.usage import Usage, usage_from
from tests.servers.embedded import embedded_postgres, embedded_valkey

SECRET = "a secret that is long enough for signing tokens in tests"
IDLE_SECONDS, TIMEOUT_SECONDS = 3, 20
"""How long the model may be silent within a stream, and before one or for a whole answer."""
LEASES = "lintello:{thinks}:leases"
BOOKED_SECONDS = 30.0
"""By the engine that ran it at once, by a janitor within its next rounds."""
DEMO = Caller(user="demo", subscription="lintello", roles=frozenset({"admin"}))


@dataclass(frozen=True)
class Site:
    """One stack and everything around it."""

    stack: Stack
    trial: TrialServer
    postgres: EmbeddedPostgres
    valkey: EmbeddedValkey
    database: Proxy
    """Between treestore, quota and PostgreSQL."""
    redis: Proxy
    """Between engine, quota and Valkey."""
    processes: Processes
    gateways: list[httpx.AsyncClient]
    """One client of each gateway, for the user of dev mode."""
    metrics_urls: dict[str, str]
    """Where each process serves its metrics, as far as it does."""

    @property
    def user(self) -> User:
        """The user of dev mode, at the first gateway."""
        return User(self.gateways[0])

    def reader(self, run_id: str = "", *, gateway: int = 0) -> Reader:
        """A client that begins at this gateway and comes back through the next one."""
        turned = [*self.gateways[gateway:], *self.gateways[:gateway]]
        return Reader(turned, run_id)

    @asynccontextmanager
    async def user_called(self, name: str) -> AsyncIterator[User]:
        """Another user, at the first gateway."""
        token = mint_user_token(SECRET, name, "pro", (), "lintello", 600)
        async with httpx.AsyncClient(base_url=self.stack.gateway_urls[0], timeout=30, headers=bearer(token)) as http:
            yield User(http)

    @asynccontextmanager
    async def proxied_gateway(self) -> AsyncIterator[tuple[Proxy, httpx.AsyncClient]]:
        """A proxy to the first gateway, and a client that goes through it."""
        at = urlsplit(self.stack.gateway_urls[0])
        # In dev mode the gateway answers to its own name only.
        host = {"Host": at.netloc}
        async with (
            proxying((at.hostname or "", at.port or 0)) as proxy,
            httpx.AsyncClient(base_url=f"http://{LOOPBACK}:{proxy.port}", timeout=60, headers=host) as http,
        ):
            yield proxy, http

    def metadata(self, service: str, caller: Caller = DEMO) -> tuple[tuple[str, str], ...]:
        """What opens a service's RPCs, as the gateway says it."""
        keys = read_keys(DataFolder(self.stack.folder))
        return (("authorization", f"Bearer {Signer(keys.internal_keys['gateway']).mint(service, caller)}"),)

    def engine_of(self, call: Call) -> str:
        """The name of the engine that makes this call of the model, while it goes on."""
        for name in self.processes.replicas("engine"):
            connections = psutil.Process(self.processes.pid(name)).net_connections("tcp")
            if any(connection.laddr.port == call.client_port for connection in connections):
                return name
        raise AssertionError("no engine makes this call")

    async def call_of(self, role: str, count: int = 1) -> Call:
        """The latest call of a role that goes on, once there are so many of the role. Raises TimeoutError."""
        async with asyncio.timeout(15):
            while True:
                calls = [call for call in self.trial.calls if call.role == role]
                if len(calls) >= count and calls[-1].ended_at is None:
                    return calls[-1]
                await asyncio.sleep(0.01)

    async def holds_slot(self, run_id: str) -> bool:
        """Whether a run holds a slot of the thinks, asked of Valkey itself."""
        async with Redis.from_url(self.valkey.url) as redis:
            return await redis.zscore(LEASES, run_id) is not None

    async def slots_taken(self) -> int:
        """How many thinks hold a slot, by the quota service."""
        async with grpc.aio.insecure_channel(self.stack.grpc_addresses("quota")[0]) as channel:
            status = await quota_pb2_grpc.QuotaServiceStub(channel).GetEngineStatus(
                quota_pb2.GetEngineStatusRequest(), metadata=self.metadata("quota")
            )
        return status.active

    async def sql(self, query: str, *values: object) -> list[dict[str, Any]]:
        """The rows of a query, asked of PostgreSQL itself, not through the proxy."""
        connection = await asyncpg.connect(self.postgres.url)
        try:
            return [dict(row) for row in await connection.fetch(query, *values)]
        finally:
            await connection.close()

    async def recorded(self, run_id: str) -> int:
        """How many events of a run are in its replay log, asked of Valkey itself, not through the proxy."""
        async with Redis.from_url(self.valkey.url) as redis:
            return int(await redis.xlen(f"lintello:run:{{{run_id}}}"))

    async def usage(self) -> dict[str, Usage]:
        """The books, by run. A run that stands in them twice can't be: they say so themselves."""
        rows = [usage_from(row) for row in await self.sql("SELECT * FROM quota.usage_log")]
        assert len(rows) == len({row.run_id for row in rows})
        return {row.run_id: row for row in rows}

    async def usage_of(self, run_id: str) -> Usage:
        """What the books say of one run, once they do. Raises TimeoutError."""
        async with asyncio.timeout(BOOKED_SECONDS):
            while not (rows := await self.sql("SELECT * FROM quota.usage_log WHERE run_id = $1::text::uuid", run_id)):
                await asyncio.sleep(0.2)
        (row,) = rows
        return usage_from(row)

    async def database_connections(self) -> int:
        """How many connections the services have open."""
        rows = await self.sql(
            "SELECT count(*) AS open FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        return int(rows[0]["open"])

    async def calm(self) -> None:
        """Everything is healthy again, the model behaves, and no run goes on."""
        self.trial.reset()
        await self.processes.all_back()
        async with asyncio.timeout(40):
            while running := await self.sql("SELECT id FROM treestore.run WHERE status = 'running'"):
                for run in running:
                    await self.gateways[0].delete(f"/api/runs/{run['id']}")
                await asyncio.sleep(0.2)


@asynccontextmanager
async def running(
    folder: Path, replicas: dict[str, int], *, rate: float = 0, metrics_port: int | None = None
) -> AsyncIterator[Site]:
    """A site of this many replicas by service, gone afterwards.

    Its model says `rate` tokens a second, 0: at once. From `metrics_port` on, each gRPC process serves its metrics.
    """
    async with AsyncExitStack() as opened:
        trial = await opened.enter_async_context(serving(rate=rate))
        postgres = await opened.enter_async_context(embedded_postgres())
        valkey = await opened.enter_async_context(embedded_valkey())
        at = urlsplit(postgres.url)
        database = await opened.enter_async_context(proxying((at.hostname or "", at.port or 0)))
        redis = await opened.enter_async_context(proxying(Path(unquote(urlsplit(valkey.url).path))))
        through = f"{at.username}:{at.password}@{LOOPBACK}:{database.port}"
        environment = {
            "PATH": os.environ["PATH"],
            "LINTELLO_DATABASE_URL": urlunsplit(at._replace(netloc=through)),
            "LINTELLO_REDIS_URL": f"redis://{LOOPBACK}:{redis.port}",
            "LINTELLO_LLM_BASE_URL": trial.base_url,
            "LINTELLO_LLM_IDLE_SECONDS": str(IDLE_SECONDS),
            "LINTELLO_LLM_TIMEOUT_SECONDS": str(TIMEOUT_SECONDS),
            "LINTELLO_JWT_SECRET": SECRET,
        }
        if metrics_port is not None:
            environment["LINTELLO_METRICS_PORT"] = str(metrics_port)
        metrics: dict[str, str] = {}

        def note(kind: str, name: str, detail: str) -> None:
            if kind == "metrics":
                metrics[name] = f"http://{LOOPBACK}:{detail}/metrics"

        options = StackOptions(note, _nothing, data_dir=folder, environment=environment, replicas=replicas)
        stack = await opened.enter_async_context(Stack(options))
        gateways = [
            await opened.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60)) for url in stack.gateway_urls
        ]
        metrics |= {f"gateway-{number}": f"{url}/metrics" for number, url in enumerate(stack.gateway_urls, 1)}
        processes = Processes(stack, servers(postgres, valkey))
        yield Site(stack, trial, postgres, valkey, database, redis, processes, gateways, metrics)


def _nothing(*_: object) -> None:
    """Lines of the stack's parts are in its logs."""
