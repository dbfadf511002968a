"""The leases on the slots for thinks, kept in Redis and judged by its clock.

A lease that nobody renews expires, so an engine that dies gives its slots back. Every rule is in a script that runs
as one step; see scripts/*.lua.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from kit import telemetry
from services.quota.errors import LeasesUnavailable

KEY = "lintello:{thinks}:leases"
ANSWER_SECONDS = 0.12
"""How long one script may take, connecting included."""
CONNECTIONS = 8
"""A script takes about 0.1 ms of the server: a few connections serve every engine."""
# RuntimeError: uvloop's, on writing to a connection that has just been lost.
_LOST = (TimeoutError, OSError, RuntimeError)
_AWAY = (exceptions.ConnectionError, exceptions.TimeoutError, exceptions.ReadOnlyError, *_LOST)


@dataclass(frozen=True)
class Admission:
    """What came of asking for a lease."""

    granted: bool
    active: int
    """Leases held now, the new one included."""


@dataclass(frozen=True)
class Lease:
    """One slot that is taken."""

    lease_id: str
    expires_at: datetime
    """By the Redis server's clock."""


class Leases:
    """The leases of one Redis server. Every method raises LeasesUnavailable within 200 ms when it doesn't answer."""

    def __init__(self, redis_url: str, limit: int, duration: timedelta) -> None:
        """Connects when it is first asked, so that the order of starts doesn't matter.

        `limit` is the number of slots; `duration` is how long a lease lasts that nobody renews.
        """
        self.limit = limit
        self.duration = duration
        self._milliseconds = round(duration.total_seconds() * 1000)
        self._redis = Redis.from_url(
            redis_url,
            max_connections=CONNECTIONS,
            # A connection that died while it was idle is opened anew, at once and once.
            retry=Retry(NoBackoff(), 1),
            protocol=2,
            client_name="lintello-quota",
        )
        self._scripts = {name: self._redis.register_script(text) for name, text in read_scripts().items()}
        self._turns = asyncio.Semaphore(CONNECTIONS)
        self._timeouts = 0
        self._reach = telemetry.Reach("redis")

    async def acquire(self, lease_id: str) -> Admission:
        """Take a slot unless all are taken. The same id again is the same lease."""
        granted, active = await self._run("acquire", lease_id, self._milliseconds, self.limit)
        return Admission(bool(granted), active)

    async def renew(self, lease_id: str) -> bool:
        """Keep a lease. True: it had been lost, and was taken again, also past the limit."""
        return bool(await self._run("renew", lease_id, self._milliseconds))

    async def release(self, lease_id: str) -> None:
        """Give a lease back; one that isn't held changes nothing."""
        await self._run("release", lease_id)

    async def held(self) -> list[Lease]:
        """The leases held now, the one that expires first in front."""
        flat = await self._run("status")
        return [
            Lease(lease_id.decode(), datetime.fromtimestamp(float(expiry) / 1000, UTC))
            for lease_id, expiry in zip(flat[::2], flat[1::2], strict=True)
        ]

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _run(self, script: str, *arguments: str | int) -> Any:
        timeouts = self._timeouts
        async with self._turns:
            if self._timeouts > timeouts:
                # Somebody found out while we waited for our turn; to try as well would take as long again.
                raise LeasesUnavailable
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    result = await self._scripts[script](keys=[KEY], args=arguments)
            except _AWAY as error:
                self._timeouts += isinstance(error, TimeoutError)
                self._reach.lost(error)
                raise LeasesUnavailable from None
        self._reach.found()
        return result


def read_scripts() -> Mapping[str, str]:
    """The text of every script by its name."""
    folder = resources.files("services.quota").joinpath("scripts")
    return {
        file.name.removesuffix(".lua"): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".lua")
    }
