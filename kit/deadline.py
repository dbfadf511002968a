"""Deadlines: a callee gets the caller's time left, less a margin to answer in."""

import time
from contextvars import ContextVar

MARGIN_SECONDS = 0.05

deadline: ContextVar[float | None] = ContextVar("deadline", default=None)
"""When the call being served must have been answered, by time.monotonic(); None: no limit."""


def budget(timeout: float) -> float:
    """Seconds a call made now may take: `timeout`, or what the caller's deadline leaves, which may be 0."""
    until = deadline.get()
    if until is None:
        return timeout
    return max(0.0, min(timeout, until - time.monotonic() - MARGIN_SECONDS))
