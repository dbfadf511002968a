"""How complex a message is, from 1 to 5, by heuristics that cost nothing (seed 5.2)."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml


@dataclass(frozen=True)
class Assessment:
    """A complexity from 1 to 5 and the signals that raised it above 1."""

    complexity: int
    signals: tuple[str, ...]


def assess(message: str) -> Assessment:
    """Start at 1; length, keywords, constraints and several questions raise it; 5 is the most."""
    rules = _rules()
    folded = fold(message)
    signals: list[str] = []
    if len(message.split()) > rules.long_words:
        signals.append("length")
    found = stems_in(folded, rules.keywords)
    signals += ["keyword"] * min(found, rules.max_keyword_points)
    if constraints(folded) > rules.constraints_above:
        signals.append("constraints")
    if len(re.findall(r"\?+", message)) > 1:
        signals.append("questions")
    return Assessment(min(5, 1 + len(signals)), tuple(signals))


def constraints(folded: str) -> int:
    """How many constraints a folded message names: commas, list items, "si … alors" and "if … then"."""
    commas = len(re.findall(r",(?!\d)", folded))
    items = len(re.findall(r"(?m)^\s*(?:[-*•]|\d+[.)])\s+", folded))
    conditions = len(re.findall(r"\bsi\b[^.?!]*\balors\b|\bif\b[^.?!]*\bthen\b", folded))
    return commas + items + conditions


def fold(text: str) -> str:
    """Lower case, without accents, with plain apostrophes."""
    decomposed = unicodedata.normalize("NFKD", text.replace("’", "'"))
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter)).lower()


def stem_pattern(stem: str) -> re.Pattern[str]:
    """Matches a folded text in which a word begins with the stem."""
    return re.compile(r"(?<!\w)" + re.escape(fold(stem)))


def stems_in(folded: str, patterns: Iterable[re.Pattern[str]]) -> int:
    """How many distinct stems a folded text holds; stems that begin at the same place are one."""
    return len({match.start() for pattern in patterns if (match := pattern.search(folded))})


@dataclass(frozen=True)
class _Rules:
    long_words: int
    max_keyword_points: int
    constraints_above: int
    keywords: tuple[re.Pattern[str], ...]


@cache
def _rules() -> _Rules:
    data = yaml.safe_load(resources.files(__package__).joinpath("complexity.yaml").read_text(encoding="utf-8"))
    return _Rules(
        data["long_words"],
        data["max_keyword_points"],
        data["constraints_above"],
        tuple(stem_pattern(stem) for stem in data["keywords"]),
    )
