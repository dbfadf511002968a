"""Reading what a model answers where a form was asked for: JSON, fenced or inside prose, lists, or bare lines.

Nothing here raises for what a model writes: what can't be read is None.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import json_repair

from kit.text import first_sentence, one_line

SUMMARY_CHARACTERS = 120
STEPS_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["steps"],
    "properties": {
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["title", "goal"],
                "properties": {"title": {"type": "string"}, "goal": {"type": "string"}},
            },
        }
    },
}
CRITIQUE_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["satisfied", "summary", "weaknesses"],
    "properties": {
        "satisfied": {"type": "boolean"},
        "summary": {"type": "string"},
        "weaknesses": {"type": "array", "items": {"type": "string"}},
    },
}

_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_ITEM = re.compile(r"^\s*(?:\d+\s*[.):-]|[-*•])\s*(?:\*\*)?(.+?)(?:\*\*)?\s*$")
_STEP_WORD = re.compile(r"^(?:étape|etape|step)\s*\d+\s*[.:)–—-]+\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Step:
    """One step of a plan."""

    title: str
    goal: str


@dataclass(frozen=True)
class Critique:
    """A review: whether anything needs to change, and what."""

    satisfied: bool
    summary: str
    weaknesses: tuple[str, ...]


def read_steps(text: str, most: int) -> list[Step] | None:
    """At most `most` steps; None when there are none to be read."""
    found = _steps_in(_json_in(text, '"steps"'))
    if not found:
        items = [match.group(1) for line in text.splitlines() if (match := _ITEM.match(line))]
        if len(items) < 2:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            items = lines if 2 <= len(lines) <= 12 and all(len(line) <= 200 for line in lines) else []
        found = [_step(item) for item in items]
    return [step for step in found if step.title][:most] or None


def read_critique(text: str) -> Critique | None:
    """The review; prose without a form is taken as one that asks for changes. None when there is nothing."""
    data = _json_in(text, '"satisfied"')
    if isinstance(data, dict) and ("satisfied" in data or "weaknesses" in data):
        raw = data.get("weaknesses")
        points = tuple(one_line(str(point)) for point in raw if str(point).strip()) if isinstance(raw, list) else ()
        satisfied = data.get("satisfied")
        clear = satisfied if isinstance(satisfied, bool) else not points
        return Critique(clear and not points, _line(str(data.get("summary") or "")), points)
    items = tuple(one_line(match.group(1)) for line in text.splitlines() if (match := _ITEM.match(line)))
    if items:
        return Critique(False, "", items[:8])
    prose = text.strip()
    return Critique(False, first_sentence(prose, SUMMARY_CHARACTERS), (prose,)) if prose else None


def split_summary(text: str) -> tuple[str, str] | None:
    """A summary line and the content after it; without such a line, the first sentence and the whole text.

    None when there is no text.
    """
    whole = text.strip()
    if not whole:
        return None
    first, _, rest = whole.partition("\n")
    line = first_sentence(first, SUMMARY_CHARACTERS + 1)
    if rest.strip() and rest.startswith("\n") and line and len(one_line(first)) <= SUMMARY_CHARACTERS + 40:
        return _line(_without_label(first)), rest.strip()
    return first_sentence(whole, SUMMARY_CHARACTERS), whole


def _without_label(line: str) -> str:
    return re.sub(r"^\W*(?:résumé|resume|summary)\s*\W*:\s*", "", line, flags=re.IGNORECASE)


def _line(text: str) -> str:
    plain = one_line(text.strip().strip('#*_"«» '))
    return plain if len(plain) <= SUMMARY_CHARACTERS else first_sentence(plain, SUMMARY_CHARACTERS)


def _steps_in(data: object) -> list[Step]:
    if isinstance(data, dict):
        data = next((value for value in data.values() if isinstance(value, list)), [])
    return [_step(item) for item in data] if isinstance(data, list) else []


def _step(item: object) -> Step:
    if isinstance(item, dict):
        title, goal = (str(item.get(key) or "") for key in ("title", "goal"))
        title = title or next((str(value) for value in item.values() if isinstance(value, str)), "")
    else:
        title, _, goal = _STEP_WORD.sub("", one_line(str(item)).strip("*_ ")).partition(" : ")
    plain = _STEP_WORD.sub("", one_line(title)).strip("*_ ")
    return Step(first_sentence(plain, SUMMARY_CHARACTERS), one_line(goal).strip("*_ "))


def _json_in(text: str, hint: str) -> object:
    """The first JSON value in a text; json-repair only where the text holds `hint`, the form's own key."""
    for candidate in _candidates(text):
        try:
            return json.loads(candidate)
        except (ValueError, RecursionError):
            continue
    if hint in text:
        try:
            return json_repair.loads(text[text.find("{") :])
        except (ValueError, RecursionError):
            return None
    return None


def _candidates(text: str) -> Iterable[str]:
    yield text.strip()
    for match in _FENCE.finditer(text):
        yield match.group(1)
    for opening, closing in ("{}", "[]"):
        begin, end = text.find(opening), text.rfind(closing)
        if 0 <= begin < end:
            yield text[begin : end + 1]
