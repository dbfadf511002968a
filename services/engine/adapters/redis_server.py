"""One Redis server: bounded connections, bounded waits, and a line in the log when it goes away and when it is back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from kit import telemetry

ANSWER_SECONDS = 1.0
"""How long one command may take, connecting and waiting for a free connection included."""
CONNECTIONS = 8
"""A command takes about 0.1 ms of the server: a few connections serve every run and every reader of a process."""
AWAY = (exceptions.RedisError, TimeoutError, OSError, RuntimeError)
"""What a command raises that the server didn't carry out: away, restarting, out of memory, no longer a primary; and
what uvloop raises on writing to a connection that has just been lost (RuntimeError)."""


class RedisAway(Exception):
    """The server didn't carry out a command in time; it may have all the same."""


class RedisServer:
    """The server at a URL; connects when it is first asked, and again by itself after it was away."""

    def __init__(self, url: str) -> None:
        self.redis = Redis.from_url(
            url,
            max_connections=CONNECTIONS + 1,
            # A connection that died while it was idle is opened anew, at once and once.
            retry=Retry(NoBackoff(), 1),
            socket_timeout=ANSWER_SECONDS,
            socket_connect_timeout=ANSWER_SECONDS,
            protocol=2,
            client_name="lintello-engine",
        )
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._reach = telemetry.Reach("redis")

    async def ask(self, command: Callable[[Redis], Awaitable[Any]]) -> Any:
        """Carry out a command that may be repeated. Raises RedisAway."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS), self._turns:
                answer = await command(self.redis)
        except AWAY as error:
            self._reach.lost(error)
            raise RedisAway(type(error).__name__) from None
        self._reach.found()
        return answer

    async def close(self) -> None:
        """Close the connections."""
        await self.redis.aclose()
