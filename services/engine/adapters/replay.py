"""The replay log of a run: a Redis stream of its sealed events, where every replica can read them.

An event's number is its entry's id, so no number comes twice. Every entry says which process wrote it, and a run's last
event says that it is the last: so a repeat after a lost reply can be told from a log that somebody else has closed.
"""

import secrets
from collections.abc import Iterator, Sequence
from importlib import resources

from kit import telemetry
from services.engine.adapters.redis_server import RedisAway, RedisServer
from services.engine.adapters.sealed_events import NotOpened, SealedEvents
from services.engine.events import Done, Numbered
from services.engine.ports import ReplayAway, ReplayBehind, ReplayClosed

KEPT_EVENTS = 50_000
"""Of one run; about, so that the server may drop them by the block."""
KEPT_SECONDS = 3600
"""After the last write."""
BATCH_EVENTS = 500
BATCH_BYTES = 1024 * 1024
"""One write is at most so much, or one event: the server does nothing else meanwhile."""

SCRIPT = resources.files("services.engine.adapters").joinpath("append.lua")
_WRITTEN, _CLOSED = -1, -2


class RedisReplay:
    """The replay logs of one Redis server (port Replay). What it is asked is answered, or refused, within a second."""

    def __init__(self, redis_url: str) -> None:
        """Connects when it is first asked, so that the order of starts doesn't matter."""
        self._server = RedisServer(redis_url)
        self._append = self._server.redis.register_script(SCRIPT.read_text(encoding="utf-8"))
        self._writer = secrets.token_hex(8)
        self._unreadable = ("", 0)

    async def append(self, run_id: str, key: bytes, events: Sequence[Numbered]) -> None:
        """Add events that follow one another; those that are there already are left as they are.

        Raises ReplayAway, ReplayClosed, ReplayBehind.
        """
        sealed = SealedEvents(run_id, key)
        for batch in _batches([(event, sealed.seal(event)) for event in events]):
            last = batch[-1][0]
            arguments: tuple[str | int | bytes, ...] = (
                *(self._writer, KEPT_EVENTS, KEPT_SECONDS, batch[0][0].seq),
                "end" if isinstance(last.event, Done) else "event",
                *(entry for _, entry in batch),
            )
            result = await self._run_append(run_id, arguments)
            if result == _CLOSED:
                raise ReplayClosed("another process has written here")
            if result != _WRITTEN:
                raise ReplayBehind(result)

    async def read(self, run_id: str, key: bytes, after: int, limit: int = 500) -> list[Numbered]:
        """At most `limit` events after number `after`, in order, up to one that doesn't open. Raises ReplayAway."""
        try:
            entries = await self._server.ask(lambda redis: redis.xrange(_key(run_id), f"0-{after + 1}", count=limit))
        except RedisAway as error:
            raise ReplayAway(str(error)) from None
        sealed = SealedEvents(run_id, key)
        events: list[Numbered] = []
        for entry_id, fields in entries:
            seq = int(entry_id.partition(b"-")[2])
            try:
                events.append(sealed.open(seq, fields.get(b"event") or fields.get(b"end", b"")))
            except NotOpened as error:
                # It is read again and again by whoever waits for what comes; it is told once.
                if self._unreadable != (run_id, seq):
                    telemetry.log.error("event_unreadable", run_id=run_id, seq=seq, cause=str(error))
                self._unreadable = (run_id, seq)
                break
        return events

    async def _run_append(self, run_id: str, arguments: Sequence[str | int | bytes]) -> int:
        try:
            result: int = await self._server.ask(lambda _: self._append(keys=[_key(run_id)], args=arguments))
        except RedisAway as error:
            raise ReplayAway(str(error)) from None
        return result

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()


def _key(run_id: str) -> str:
    return f"lintello:run:{{{run_id}}}"


def _batches(sealed: Sequence[tuple[Numbered, bytes]]) -> Iterator[Sequence[tuple[Numbered, bytes]]]:
    start, size = 0, 0
    for place, (_, entry) in enumerate(sealed):
        if place > start and (place - start == BATCH_EVENTS or size + len(entry) > BATCH_BYTES):
            yield sealed[start:place]
            start, size = place, 0
        size += len(entry)
    if sealed:
        yield sealed[start:]
