"""The pipe by which children notice the supervisor's death where the kernel doesn't tell them (macOS)."""

import functools
import os
import sys


@functools.cache
def _pipe() -> tuple[int, int]:
    return os.pipe()


def inherited_lifeline() -> int | None:
    """The end to hand to a child; it ends when this process does. None on Linux, where prctl does it."""
    return None if sys.platform == "linux" else _pipe()[0]
