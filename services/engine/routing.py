"""Which model serves a node: the first rule that matches (seed 11.3)."""

import re
from functools import cache
from importlib import resources
from typing import Any

import yaml

from services.engine.complexity import fold
from services.engine.domain import Alias, Role
from services.engine.modes.config import ChainConfig


def choose(
    role: Role,
    context_tokens: int,
    config: ChainConfig | None = None,
    requested: Alias | None = None,
    detected: Alias | None = None,
) -> Alias:
    """The alias for a node.

    In this order: a context over 7,000 tokens; a synthesis over 3,000; the mode's `model_override`; its steps' or its
    synthesis' model; the request's; the one detected for the message; small.
    """
    rules = _rules()
    if context_tokens > rules["context_for_large"]:
        return "large"
    if role is Role.SYNTHESIZE and context_tokens > rules["synthesis_context_for_large"]:
        return "large"
    of_mode: Alias | None = None
    if config is not None:
        by_role = config.synthesis_model if role is Role.SYNTHESIZE else config.steps_model
        of_mode = config.model_override or by_role
    return of_mode or requested or detected or "small"


def detect(message: str) -> Alias | None:
    """The model a message asks for by its content; None: no rule matches."""
    folded = fold(message)
    for alias, patterns in _rules()["detect"].items():
        if any(pattern.search(folded) for pattern in patterns):
            found: Alias = alias
            return found
    return None


@cache
def _rules() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(
        resources.files(__package__).joinpath("routing.yaml").read_text(encoding="utf-8")
    )
    data["detect"] = {
        alias: [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
        for alias, patterns in data["detect"].items()
    }
    return data
