"""Killing, freezing and restarting each process of a stack, and each server it stands on, by name."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

import asyncpg
import psutil
from redis.asyncio import Redis
from redis.exceptions import RedisError

from cli.local.health import grpc_serving, http_ready
from cli.local.postgres import EmbeddedPostgres
from cli.local.stack import Stack
from cli.local.valkey import EmbeddedValkey

BACK_SECONDS = 30.0
"""The supervisor waits up to 5 s before it starts again what dies again and again; then it has to start."""


@dataclass(frozen=True)
class Server:
    """A server that isn't the stack's own: its process id, how it is asked to end, whether it answers."""

    pid: Callable[[], int]
    stop_signal: signal.Signals
    answers: Callable[[], Awaitable[bool]]


def servers(postgres: EmbeddedPostgres, valkey: EmbeddedValkey) -> dict[str, Server]:
    """The two embedded servers. SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for its clients."""

    async def postgres_answers() -> bool:
        try:
            connection = await asyncpg.connect(postgres.url, timeout=5)
        except (OSError, TimeoutError, asyncpg.PostgresError):
            return False
        await connection.close()
        return True

    async def valkey_answers() -> bool:
        async with Redis.from_url(valkey.url) as redis:
            try:
                return bool(await redis.ping())
            except RedisError:
                return False

    return {
        "postgres": Server(lambda: postgres.pid, signal.SIGINT, postgres_answers),
        "valkey": Server(lambda: valkey.pid, signal.SIGTERM, valkey_answers),
    }


class Processes:
    """The processes of one stack: engine, engine-2, gateway, treestore, quota, postgres, valkey, …"""

    def __init__(self, stack: Stack, servers: Mapping[str, Server]) -> None:
        self._stack = stack
        self._servers = servers

    @property
    def names(self) -> list[str]:
        """Everything that can be killed here."""
        return [*self._stack.children, *self._servers]

    def replicas(self, service: str) -> list[str]:
        """The names of the processes of one service."""
        return [name for name in self._stack.children if service_of(name) == service]

    def pid(self, name: str) -> int:
        """The process that has this name now; 0 while it doesn't run."""
        server = self._servers.get(name)
        return self._stack.children[name] if server is None else server.pid()

    def kill(self, name: str) -> int:
        """SIGKILL; the process id it had. The supervisor starts it again."""
        return self._signal(name, signal.SIGKILL)

    def terminate(self, name: str) -> int:
        """Ask it to end; the process id it has until it does. The supervisor starts it again."""
        server = self._servers.get(name)
        return self._signal(name, signal.SIGTERM if server is None else server.stop_signal)

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """SIGSTOP; SIGCONT afterwards, if it is still there."""
        pid = self._signal(name, signal.SIGSTOP)
        try:
            yield
        finally:
            if psutil.pid_exists(pid):
                os.kill(pid, signal.SIGCONT)

    @asynccontextmanager
    async def away(self, name: str) -> AsyncIterator[None]:
        """Killed, and started again only after this, when it is waited for. For the stack's own processes."""
        async with self._stack.hold(name):
            yield
        await self.back(name)

    async def restart(self, name: str) -> None:
        """End it in good order, and wait until its successor is healthy."""
        await self.back(name, instead_of=self.terminate(name))

    async def back(self, name: str, *, instead_of: int = 0) -> None:
        """Wait until it is healthy, and another process than `instead_of`. Raises TimeoutError."""
        async with asyncio.timeout(BACK_SECONDS):
            while self.pid(name) in (0, instead_of) or not await self.is_healthy(name):
                await asyncio.sleep(0.05)

    async def all_back(self) -> None:
        """Wait until everything is healthy, the gateways last: they say so of all. Raises TimeoutError."""
        for name in sorted(self.names, key=lambda name: service_of(name) == "gateway"):
            await self.back(name)

    async def is_healthy(self, name: str) -> bool:
        """Whether it answers as it should."""
        if name in self._servers:
            return await self._servers[name].answers()
        place = self.replicas(service_of(name)).index(name)
        if service_of(name) == "gateway":
            return await http_ready(_port(self._stack.gateway_urls[place]))
        return await grpc_serving(_port(self._stack.grpc_addresses(service_of(name))[place]))

    def resident_bytes(self, name: str) -> int:
        """The memory it holds."""
        rss: int = psutil.Process(self.pid(name)).memory_info().rss
        return rss

    def _signal(self, name: str, number: signal.Signals) -> int:
        pid = self.pid(name)
        # 0 would be our own process group.
        assert pid != 0, f"{name} doesn't run"
        os.kill(pid, number)
        return pid


def service_of(name: str) -> str:
    """`engine` of `engine-2`."""
    return name.partition("-")[0]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
