"""The events of a run, and the log that numbers them and lets readers follow.

A reader has no buffer of its own: it reads the run's log at its own pace, so one that stalls neither slows the
run nor makes anything grow.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from services.engine.domain import Degraded, Node

COALESCE_SECONDS = 0.02
COALESCE_BYTES = 4096


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The question is stored."""

    conversation_id: str
    message_id: str
    parent_node_id: str


@dataclass(frozen=True, slots=True)
class ModeSwitched:
    """The conversation is in another mode now."""

    before: str
    to: str
    reason: Literal["requested", "detected"]


@dataclass(frozen=True, slots=True)
class ThinkingStarted:
    """A think begins."""

    schema: str
    mode: str
    mode_name: str
    complexity: int
    display_template: str


@dataclass(frozen=True, slots=True)
class ThinkingStep:
    """A step began or ended."""

    step: int
    total: int
    status: Literal["started", "completed", "failed"]
    summary: str
    icon: str
    role: str
    node_id: str
    parent_id: str
    branch: str
    model: str
    tokens: int = 0
    score: float | None = None
    duration_ms: int = 0


@dataclass(frozen=True, slots=True)
class Content:
    """A piece of the answer."""

    content: str


@dataclass(frozen=True, slots=True)
class ThinkingCompleted:
    """The think is over."""

    nodes: tuple[Node, ...]
    input_tokens: int
    output_tokens: int
    duration_ms: int
    cost_eur: float
    schema: str
    mode: str
    complexity: int
    display_template: str
    partial: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something went wrong that the user must know of."""

    code: str
    message: str
    retryable: bool


@dataclass(frozen=True, slots=True)
class Done:
    """The run has ended and is stored."""

    conversation_id: str
    message_id: str
    node_id: str
    model: str
    tokens_used: int
    cost_eur: float
    thinking: bool
    partial: bool
    degraded: Degraded


Event = RunStarted | ModeSwitched | ThinkingStarted | ThinkingStep | Content | ThinkingCompleted | Trouble | Done


@dataclass(frozen=True, slots=True)
class Numbered:
    """An event with its place in the run."""

    seq: int
    at: datetime
    event: Event


class EventLog:
    """The events of one run, numbered from 1 without gaps.

    The first piece of content goes at once; those after it are joined for 20 ms or until they are 4 kB.
    """

    def __init__(self) -> None:
        self._events: list[Numbered] = []
        self._pieces: list[str] = []
        self._bytes = 0
        self._content_began = False
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        self.closed = False

    def emit(self, event: Event) -> None:
        """Add an event; content that waits goes first. After `done` nothing is taken."""
        if self.closed:
            return
        if isinstance(event, Content) and self._content_began:
            self._pieces.append(event.content)
            self._bytes += len(event.content.encode())
            if self._bytes >= COALESCE_BYTES:
                self.flush()
            elif self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(COALESCE_SECONDS, self.flush)
            return
        self.flush()
        self._content_began = self._content_began or isinstance(event, Content)
        self._append(event)

    def flush(self) -> None:
        """Let content that waits for more go now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            joined = "".join(self._pieces)
            self._pieces.clear()
            self._bytes = 0
            self._append(Content(joined))

    async def past(self, seq: int) -> None:
        """Wait until there is an event after number `seq`, or the last one is there."""
        while len(self._events) <= seq and not self.closed:
            await self._changed.wait()

    def since(self, seq: int, limit: int) -> list[Numbered]:
        """At most `limit` events after number `seq`."""
        return self._events[seq : seq + limit]

    async def follow(self, after: int = 0) -> AsyncGenerator[Numbered, None]:
        """Every event after number `after`, those to come included, until the last."""
        place = after
        while True:
            while place < len(self._events):
                place += 1
                yield self._events[place - 1]
            if self.closed:
                return
            await self._changed.wait()

    @property
    def last_seq(self) -> int:
        """The number of the last event."""
        return len(self._events)

    def _append(self, event: Event) -> None:
        self._events.append(Numbered(len(self._events) + 1, datetime.now(UTC), event))
        self.closed = isinstance(event, Done)
        # Who waits now is woken; who comes later waits for the next one.
        self._changed.set()
        self._changed.clear()
