"""What a call sees: the mode's system prompt, the history within the subscription's budget, and what is asked."""

from collections.abc import Sequence

from kit.model import estimate_tokens
from services.engine.domain import Turn


def cut(history: Sequence[Turn], budget: int) -> tuple[Turn, ...]:
    """The newest turns that fit into `budget` estimated tokens, in their order, beginning with a question."""
    kept: list[Turn] = []
    left = budget
    for turn in reversed(history):
        left -= estimate_tokens(turn.content)
        if left < 0:
            break
        kept.append(turn)
    kept.reverse()
    while kept and kept[0].role != "user":
        kept.pop(0)
    return tuple(kept)


def size(system: str, turns: Sequence[Turn]) -> int:
    """Estimated tokens of everything a call sees."""
    return estimate_tokens(system) + sum(estimate_tokens(turn.content) for turn in turns)
