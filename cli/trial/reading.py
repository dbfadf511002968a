"""Reading a question: what kind it is, what it is about, what it fixes — all in the question's own words."""

import hashlib
import re
from dataclasses import dataclass, replace

from cli.trial.texts import Locale, Vocabulary, vocabulary

TOPIC_WORDS = 10
READ_CHARACTERS = 4000
"""What of a question is read: more would change no answer and cost time."""
_SENTENCE = re.compile(r"(?<=[.!?…])\s+|\n+")
_MARKS = str.maketrans(
    {"|": "/", "`": "'", "*": "", "«": "", "»": "", "“": "", "”": "", "#": "", "’": "'", "<": "", ">": ""}
)


@dataclass(frozen=True)
class Reading:
    """A question taken apart. All texts are free of Markdown marks and line breaks."""

    locale: Locale
    kind: str
    """A key of the texts' `plans`: compare (named things), count (a number of ways), code, organise …"""
    topic: str
    """What it is about, at most ten words."""
    number: str = ""
    unit: str = ""
    count: int = 0
    """How many ways are asked for, with the words used: "trois", "façons", 3."""
    options: tuple[str, ...] = ()
    """The things compared, when they are named."""
    aspects: tuple[str, ...] = ()
    """Keys of what the answer must cover: budget, steps, schedule, risks, examples, criteria."""
    limits: tuple[str, ...] = ()
    """Conditions set, as worded."""
    figures: tuple[str, ...] = ()
    """Quantities given, as worded."""
    seed: int = 0
    """A stable number from the question, for the choice between wordings."""


def locale_of(question: str, *, english_prompt: bool) -> Locale:
    """The question's language; where its words don't tell, that of the prompt around it."""
    words = re.findall(r"[a-zà-ÿ]+", question.lower())
    french = sum(word in vocabulary("fr").stopwords for word in words) + len(re.findall(r"[éèêàçùœ]", question.lower()))
    english = sum(word in vocabulary("en").stopwords for word in words)
    if french == english:
        return "en" if english_prompt else "fr"
    return "en" if english > french else "fr"


def read(question: str, *, english_prompt: bool = False) -> Reading:
    """Take a question apart. Any text is accepted, the empty one included."""
    seed = int.from_bytes(hashlib.sha256(question.encode("utf-8", "replace")).digest()[:4])
    question = question[:READ_CHARACTERS]
    locale = locale_of(question, english_prompt=english_prompt)
    words = vocabulary(locale)
    sentences = [clean for part in _SENTENCE.split(question) if (clean := _clean(part, words))]
    asking, kind, rest = _asking(sentences, words)
    rest = re.sub(r"^(?:entre|between)\s+", "", rest)
    givens = tuple(clip(sentence, 14, words) for sentence in sentences if sentence != asking)
    focus, *tails = [part.strip() for part in words.tail.split(rest) if part and part.strip()] or [rest]
    reading = Reading(
        locale=locale,
        kind=kind,
        topic=focus,
        figures=tuple(dict.fromkeys(found.strip(" .,") for found in words.figure.findall(question))),
        seed=seed,
    )
    reading = _with_alternatives(_with_count(reading, words), words)
    if reading.kind == "compare" and len(reading.options) < 2:
        reading = replace(reading, kind="decide", options=())
    if reading.kind not in ("compare", "count", "definition", "decide") and words.code.search(question):
        reading = replace(reading, kind="code")
    elif reading.kind in ("howto", "general") and words.plan_word.search(question):
        reading = replace(reading, kind="organise")
    if reading.kind == "definition":
        reading = replace(reading, topic=words.article.sub("", reading.topic))
    ways = f"{reading.number} {reading.unit}"
    figures = tuple(figure for figure in reading.figures if figure.lower() != ways)
    aspects, limits = _demands(tails, words)
    topic = clip(reading.topic, TOPIC_WORDS, words) or clip(_clean(question, words), TOPIC_WORDS, words)
    return replace(
        reading, topic=topic or words.message, aspects=aspects, limits=(*limits, *givens)[:2], figures=figures
    )


def refers_back(question: str, locale: Locale) -> bool:
    """Whether the question leans on what was said before."""
    return vocabulary(locale).back_reference.search(question.strip().lower()) is not None


def clip(text: str, limit: int, words: Vocabulary) -> str:
    """The first `limit` words, without a dangling article or preposition when words were left out."""
    kept = text.split()
    if len(kept) > limit:
        kept = kept[:limit]
        while len(kept) > 1 and kept[-1].lower().strip(",;:") in words.trailing:
            kept.pop()
    return " ".join(kept).strip(" ,;:.!?…-")


def _clean(text: str, words: Vocabulary) -> str:
    plain = " ".join(text.translate(_MARKS).split())
    plain = "".join(character for character in plain if character.isprintable())
    return words.courtesy.sub("", plain).strip(" ,;:.!?…-")


def _asking(sentences: list[str], words: Vocabulary) -> tuple[str, str, str]:
    """The sentence that asks, the kind of its opener, and what follows the opener."""
    for sentence in sentences:
        for kind, opener in words.openers:
            if (match := opener.match(sentence)) is not None:
                return sentence, kind, words.own_to_yours(sentence[match.end() :])
    last = sentences[-1] if sentences else ""
    return last, "general", words.own_to_yours(last)


def _with_count(reading: Reading, words: Vocabulary) -> Reading:
    match = words.counted.match(reading.topic)
    if match is None:
        return reading
    number = match["number"].lower()
    count = int(number) if number.isdigit() else words.numbers[number]
    topic = words.own_to_yours(match["object"]) if match["object"] else reading.topic
    if not 2 <= count <= 6:
        return replace(reading, topic=topic)
    return replace(reading, kind="count", topic=topic, number=number, unit=match["unit"].lower(), count=count)


def _with_alternatives(reading: Reading, words: Vocabulary) -> Reading:
    if reading.kind not in ("compare", "decide"):
        return reading
    named, *purpose = words.purpose.split(reading.topic, maxsplit=1)
    options = tuple(clip(words.article.sub("", part), 4, words) for part in words.alternatives.split(named))
    if not 2 <= len(options) <= 3 or not all(options):
        return reading
    return replace(reading, kind="compare", options=options, topic=purpose[0] if purpose else reading.topic)


def _demands(tails: list[str], words: Vocabulary) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What follows the focus, told apart: aspects the answer must cover, and conditions."""
    aspects: list[str] = []
    limits: list[str] = []
    for tail in tails:
        parts = [words.leading.sub("", part) for part in words.joiner.split(words.leading.sub("", tail)) if part]
        found = [key for part in parts for key, stem in words.aspects.items() if stem.match(part)]
        aspects += found
        if not all(any(stem.fullmatch(part) for stem in words.aspects.values()) for part in parts):
            limits.append(clip(words.own_to_yours(tail), 8, words))
    return tuple(dict.fromkeys(aspects)), tuple(dict.fromkeys(filter(None, limits)))
