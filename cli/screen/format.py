"""Small pieces of text: durations, counts, costs, and text made safe for a terminal."""

import re
from typing import Any

from cli.texts import say

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text without control characters but newline and tab: what a model writes must not steer a terminal."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """The text on one line, printable."""
    return " ".join(printable(text).split())


def seconds(milliseconds: float) -> str:
    """`1.2 s`."""
    return f"{milliseconds / 1000:.1f} s"


def tokens(count: int) -> str:
    """`12 345 tokens`, in groups of three."""
    return say("run.tokens", count=f"{count:,}".replace(",", "\u202f"))


def euros(amount: float) -> str:
    """`0.0012 €`: four decimals, as a think costs less than a cent."""
    return f"{amount:.4f} €"


def number(value: Any) -> float:
    """A number out of JSON; 0 when it isn't one."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def text(value: Any) -> str:
    """A text out of JSON; "" when it isn't one."""
    return value if isinstance(value, str) else ""
