"""The sentence material of the trial model, loaded once from `texts/`."""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

Locale = Literal["fr", "en"]
FOLDER = Path(__file__).parent / "texts"


@dataclass(frozen=True)
class Vocabulary:
    """The words and patterns by which a question in one language is read."""

    stopwords: frozenset[str]
    trailing: frozenset[str]
    courtesy: re.Pattern[str]
    openers: tuple[tuple[str, re.Pattern[str]], ...]
    numbers: dict[str, int]
    counted: re.Pattern[str]
    """Matches "<number> <unit> of <object>"."""
    code: re.Pattern[str]
    plan_word: re.Pattern[str]
    tail: re.Pattern[str]
    leading: re.Pattern[str]
    joiner: re.Pattern[str]
    alternatives: re.Pattern[str]
    article: re.Pattern[str]
    purpose: re.Pattern[str]
    figure: re.Pattern[str]
    back_reference: re.Pattern[str]
    aspects: dict[str, re.Pattern[str]]
    possessives: dict[str, str]
    message: str

    def own_to_yours(self, text: str) -> str:
        """The asker's "my" turned into the answer's "your"."""
        mine = re.compile(rf"\b({'|'.join(self.possessives)})\b", re.IGNORECASE)
        return mine.sub(lambda match: self.possessives[match[1].lower()], text)


@functools.cache
def texts(locale: Locale) -> dict[str, Any]:
    """All sentence material of a language."""
    source = (FOLDER / f"{locale}.yaml").read_text(encoding="utf-8")
    # French quotation marks never end or begin a line apart from their text.
    loaded: dict[str, Any] = yaml.safe_load(source.replace("« ", "«\u00a0").replace(" »", "\u00a0»"))
    return loaded


@functools.cache
def vocabulary(locale: Locale) -> Vocabulary:
    """The reading vocabulary of a language."""
    source = texts(locale)["reading"]
    numbers = "|".join(source["numbers"])
    units = "|".join(source["units"])
    quantity = rf"(?:(?:les|the|des|mes|my)\s+)?(?P<number>\d+|{numbers})\s+(?P<unit>{units})\b"
    counted = rf"{quantity}(?:\s+{source['unit_link']}(?P<object>.+))?"
    patterns = ("courtesy", "code", "plan_word", "tail", "leading", "joiner", "alternatives", "article", "purpose")
    compiled = {name: _pattern(source[name]) for name in (*patterns, "figure", "back_reference")}
    return Vocabulary(
        stopwords=frozenset(source["stopwords"]),
        trailing=frozenset(source["trailing"]),
        openers=tuple((kind, _pattern(opener)) for kind, opener in source["openers"]),
        numbers=source["numbers"],
        counted=_pattern(counted),
        aspects={key: _pattern(rf"(?:{stem})\b") for key, stem in source["aspects"].items()},
        possessives=source["possessives"],
        message=texts(locale)["words"]["message"],
        **compiled,
    )


def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.IGNORECASE)
