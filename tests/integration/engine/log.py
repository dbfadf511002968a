"""A run's replay log as one process has it, and events to put there."""

from datetime import UTC, datetime
from typing import cast

from redis.asyncio import Redis

from services.engine.adapters.replay import RedisReplay
from services.engine.events import Content, Done, Event, Numbered, Trouble

DONE = Done("c", "m", "n", "model", 3, 0.1, True, False, "")
LOST = Trouble("interrupted", "l'exécution a été interrompue", True)


class Log:
    """One run's log, as one process has it."""

    def __init__(self, replay: RedisReplay, run_id: str, key: bytes) -> None:
        self.replay, self.run_id, self.key = replay, run_id, key

    async def append(self, *events: Numbered) -> None:
        await self.replay.append(self.run_id, self.key, events)

    async def read(self, after: int = 0, limit: int = 500) -> list[Numbered]:
        return await self.replay.read(self.run_id, self.key, after, limit)


def numbered(seq: int, event: Event | None = None) -> Numbered:
    return Numbered(seq, datetime.now(UTC), event or Content(f"morceau {seq} é\u2028"))


def some(first: int, last: int) -> list[Numbered]:
    return [numbered(seq) for seq in range(first, last + 1)]


def stream_of(log: Log) -> str:
    return f"lintello:run:{{{log.run_id}}}"


async def stored(redis: Redis, log: Log) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of a log as the server has them."""
    return cast(list[tuple[bytes, dict[bytes, bytes]]], await redis.xrange(stream_of(log)))
