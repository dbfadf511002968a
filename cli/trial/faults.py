"""Misbehaviour on command: rules that say which calls go wrong, and how.

A rule is `{"match": {"role", "stream", "nth"}, "times": n, "action": {...}}`. The first rule that fits a call and
isn't used up applies to it. `nth` counts, from 1, the calls that fit the rest of the match since the rules were set,
whoever answered them.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, get_args

from cli.trial.roles import Role

HANGS: Final = ("before", "headers", "middle")
CUTS: Final = ("before", "middle")


class InvalidRule(ValueError):
    """A rule that can't be understood; the message names the field and what is allowed."""


@dataclass(frozen=True)
class Action:
    """How a call goes wrong. The fields combine; what stops an answer earliest wins."""

    delay_ms: float = 0
    """Wait before the response begins."""
    status: int | None = None
    """Answer with this status and `body` (or an OpenAI error body) in place of a completion."""
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    """Headers added to whatever is sent."""
    hang: str | None = None
    """Send nothing, the headers only, or half the answer; then nothing more until the client leaves."""
    cut: str | None = None
    """Reset the connection before anything or after half the answer."""
    no_done: bool = False
    """The stream ends as HTTP asks, without `[DONE]`."""
    no_finish: bool = False
    """The stream has no piece with a finish_reason."""
    error_in_200: bool = False
    """Status 200, and an error for a body; in a stream an error frame, after `text` or `chunks` if given."""
    broken_frame: bool = False
    """One frame (or the whole body) is JSON cut short."""
    split_bytes: bool = False
    """The body goes out one byte per write and per HTTP chunk."""
    invalid_byte: bool = False
    """A byte that isn't UTF-8 stands in the middle of the text."""
    text: str | None = None
    """Exactly this completion."""
    chunks: tuple[str, ...] | None = None
    """Exactly these pieces of a stream; joined, the completion."""
    reasoning: str | None = None
    """Sent as `reasoning_content`, before the answer."""
    usage: dict[str, Any] | None = None
    overrides_usage: bool = False
    """Set by the presence of `usage` in the rule, null included."""
    rate: float | None = None
    """Tokens a second for this answer; 0 is without delay."""


@dataclass
class Rule:
    """Which calls an action applies to, and what is left of it."""

    action: Action
    role: str | None = None
    stream: bool | None = None
    nth: int | None = None
    times: int = 1
    seen: int = 0
    used: int = 0

    def fits(self, role: str, streamed: bool) -> bool:
        """Whether the call is one this rule counts."""
        return self.role in (None, role) and self.stream in (None, streamed)


NO_FAULT: Final = Action()


class Faults:
    """The rules in force."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def replace(self, rules: object) -> None:
        """Put these rules in force in place of all others. Raises InvalidRule and changes nothing if one is wrong."""
        if not isinstance(rules, list):
            raise InvalidRule("the rules must be a list")
        self._rules = [_rule(rule, f"[{index}]") for index, rule in enumerate(rules)]

    def clear(self) -> None:
        """Behave again."""
        self._rules = []

    def action_for(self, role: str, streamed: bool) -> Action:
        """The action for a call that begins now, using its rule up by one."""
        fitting = [rule for rule in self._rules if rule.fits(role, streamed)]
        for rule in fitting:
            rule.seen += 1
        for rule in fitting:
            if rule.used < rule.times and (rule.nth is None or rule.seen >= rule.nth):
                rule.used += 1
                return rule.action
        return NO_FAULT


_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "delay_ms": (int, float),
    "status": (int,),
    "headers": (dict,),
    "hang": (str,),
    "cut": (str,),
    "text": (str,),
    "chunks": (list,),
    "reasoning": (str,),
    "usage": (dict, type(None)),
    "rate": (int, float),
}


def _rule(value: object, path: str) -> Rule:
    entry = _object(value, path, {"match", "times", "action"})
    match = _object(entry.get("match", {}), f"{path}.match", {"role", "stream", "nth"})
    role, stream, nth, times = match.get("role"), match.get("stream"), match.get("nth"), entry.get("times", 1)
    if role is not None and role not in get_args(Role):
        raise InvalidRule(f"{path}.match.role must be one of {', '.join(get_args(Role))}")
    if stream is not None and not isinstance(stream, bool):
        raise InvalidRule(f"{path}.match.stream must be true or false")
    for name, number in (("match.nth", 1 if nth is None else nth), ("times", times)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise InvalidRule(f"{path}.{name} must be a whole number from 1")
    action = _action(entry.get("action", {}), f"{path}.action")
    return Rule(action=action, role=role, stream=stream, nth=nth, times=times)


def _action(value: object, path: str) -> Action:
    known = {each.name for each in fields(Action)} - {"overrides_usage"}
    given = dict(_object(value, path, known))
    for name, content in given.items():
        allowed = (object,) if name == "body" else _TYPES.get(name, (bool,))
        if not isinstance(content, allowed) or (isinstance(content, bool) and bool not in allowed and name != "body"):
            raise InvalidRule(f"{path}.{name} must be {' or '.join(kind.__name__ for kind in allowed)}")
    for name, values in (("hang", HANGS), ("cut", CUTS)):
        if given.get(name) not in (None, *values):
            raise InvalidRule(f"{path}.{name} must be one of {', '.join(values)}")
    if "chunks" in given:
        if not all(isinstance(piece, str) for piece in given["chunks"]):
            raise InvalidRule(f"{path}.chunks must hold strings")
        given["chunks"] = tuple(given["chunks"])
    if not all(isinstance(text, str) for text in given.get("headers", {}).values()):
        raise InvalidRule(f"{path}.headers must hold strings")
    return Action(**given, overrides_usage="usage" in given)


def _object(value: object, path: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidRule(f"{path} must be an object")
    if unknown := sorted(set(value) - known):
        raise InvalidRule(f"{path}.{unknown[0]} is unknown; allowed: {', '.join(sorted(known))}")
    return value
