"""What the trial model was asked, call by call, for tests to look at."""

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Call:
    """One chat completion call. Times are seconds of `time.monotonic()`."""

    role: str
    model: str
    streamed: bool
    prompt_tokens: int
    header_names: tuple[str, ...]
    client_port: int
    """The caller's TCP port: tells which process it is."""
    body: dict[str, Any]
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    status: int | None = None
    """The status sent; None when the connection ended before one was."""
    completion_tokens: int = 0
    """Tokens sent so far, which is less than the whole when the client left."""
    aborted: bool = False
    aborted_at: float | None = None
    """When the client was seen to have left before the end."""

    def leave(self) -> None:
        """Record that the client went away before the answer was complete."""
        self.aborted = True
        self.aborted_at = time.monotonic()

    def as_json(self) -> dict[str, Any]:
        """The call as plain JSON values."""
        return asdict(self)


class Ledger:
    """The calls received, in order; forgets everything unless told to keep."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._changed = asyncio.Event()
        self.calls: list[Call] = []

    def open(self, call: Call) -> None:
        """Enter a call that begins."""
        if self._keep:
            self.calls.append(call)

    def close(self, call: Call) -> None:
        """Mark a call as over, however it ended."""
        call.ended_at = time.monotonic()
        self._changed.set()

    def clear(self) -> None:
        """Forget all calls."""
        self.calls.clear()

    async def ended(self, count: int) -> list[Call]:
        """Wait until `count` calls are over, and return those that are. The caller sets the time limit."""
        while len(over := [call for call in self.calls if call.ended_at is not None]) < count:
            self._changed.clear()
            await self._changed.wait()
        return over
