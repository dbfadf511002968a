"""Following a run: its events as one sequence, over as many calls to the engines as it takes."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import grpc
from lintello.engine.v1 import engine_pb2 as pb

from kit.errors import RemoteError

Call = AsyncGenerator[pb.ThinkingEvent, None]
Watch = Callable[[int], Call]
"""Calls an engine for the events after a number."""

AWAY = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)
"""What a call ends with when its engine, or the way to it, is gone; another one may do."""
AWAY_SECONDS = 40.0
"""For how long a run is tried to be found again. A silent engine is taken for dead after 20."""
PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6)
"""Seconds between the tries; the last one again and again."""


class Following:
    """The events of one run after a number: each once, without gaps, up to `done`.

    A call that breaks is made anew where it was. When that fails for too long, or the run is there no more, the
    iteration raises RemoteError; nothing is ever made up. Close it with `contextlib.aclosing`.
    """

    def __init__(
        self,
        run_id: str,
        watch: Watch,
        after: int = 0,
        begun: tuple[pb.ThinkingEvent, Call] | None = None,
        away_seconds: float = AWAY_SECONDS,
    ) -> None:
        """`begun` is the event that comes after `after`, and the call that carries those after it.

        Without it `watch` is called for them. `away_seconds` is how long a run is tried to be found again.
        """
        self.run_id = run_id
        self._watch = watch
        self._away_seconds = away_seconds
        self._begun = begun
        self._events = self._follow(after)
        self._first: asyncio.Task[pb.ThinkingEvent | None] | None = None

    async def is_over(self, seconds: float, closing: asyncio.Event | None = None) -> bool:
        """Whether the run has ended with nothing after the number; at most so many seconds are waited to know.

        To be asked once, before anything else. No event is lost by it. When `closing` is set it isn't waited any more.
        Raises RemoteError.
        """
        self._first = asyncio.create_task(self._anext())
        waited: set[asyncio.Task[Any]] = {self._first}
        if closing is not None:
            waited.add(asyncio.create_task(closing.wait()))
        try:
            await asyncio.wait(waited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for other in waited - {self._first}:
                other.cancel()
        return self._first.done() and self._first.result() is None

    def __aiter__(self) -> "Following":
        return self

    async def __anext__(self) -> pb.ThinkingEvent:
        coming, self._first = self._first, None
        event = await (self._anext() if coming is None else coming)
        if event is None:
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """End the call."""
        coming, self._first = self._first, None
        if coming is not None:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)
        await self._events.aclose()
        if self._begun is not None:
            await self._begun[1].aclose()

    async def _anext(self) -> pb.ThinkingEvent | None:
        return await anext(self._events, None)

    async def _follow(self, after: int) -> Call:
        clock = asyncio.get_running_loop().time
        seq, tries, lost_at = after, 0, None
        call = self._watch(seq) if self._begun is None else _joined(*self._begun)
        while True:
            began = clock()
            try:
                async with aclosing(call) as events:
                    async for event in events:
                        if event.seq <= seq:
                            continue
                        if event.seq > seq + 1:
                            # Something is missing on this way; what is missing is asked for again.
                            break
                        seq, tries, lost_at = event.seq, 0, None
                        yield event
                        if event.HasField("done"):
                            return
                    else:
                        if seq == after:
                            return
                broken = RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "")
            except RemoteError as error:
                # An engine that died may have told more than it could write down: the run hasn't come to an end yet.
                behind = error.reason == "SEQUENCE_AHEAD" and seq > after
                if error.code not in AWAY and not behind:
                    raise
                broken = error
            now = clock()
            if lost_at is None or now - began > self._away_seconds:
                lost_at = now
            elif now - lost_at >= self._away_seconds:
                raise broken
            await asyncio.sleep(PAUSES[min(tries, len(PAUSES) - 1)])
            tries += 1
            call = self._watch(seq)


async def _joined(first: pb.ThinkingEvent, rest: Call) -> Call:
    async with aclosing(rest):
        yield first
        async for event in rest:
            yield event
