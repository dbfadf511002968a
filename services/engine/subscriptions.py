"""What a subscription may do: how much history it carries, where it may think, and whether it may force a think."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

LEAST = "gratuit"


class ForcedThinkingForbidden(Exception):
    """This subscription thinks when a question needs it, not on demand."""


@dataclass(frozen=True)
class Subscription:
    """The rules of one subscription."""

    history_tokens: int
    discovery_only: bool
    may_force: bool


def subscription_of(slug: str) -> Subscription:
    """The rules of a subscription; those of the least for one that isn't known."""
    known = _subscriptions()
    return known.get(slug, known[LEAST])


@cache
def _subscriptions() -> dict[str, Subscription]:
    text = resources.files(__package__).joinpath("subscriptions.yaml").read_text(encoding="utf-8")
    return {slug: Subscription(**rules) for slug, rules in yaml.safe_load(text).items()}
