"""Writing each role's answer out of the question's own words, in the sentences of `texts/`.

The same prompt always gets the same answer: what varies, varies with a hash of the question.
"""

import itertools
import json
from typing import Any

from cli.trial.reading import Reading, clip, read, refers_back
from cli.trial.roles import Asked
from cli.trial.schema import value_for
from cli.trial.texts import texts, vocabulary

MAX_STEPS = 4
SUMMARY_CHARACTERS = 120
TITLE_WORDS = 12
LONG_TOPIC_WORDS = 6
KNOWLEDGE = ("definition", "explain")
"""Kinds that ask to understand, where neither figures nor conditions are missed."""


def write(asked: Asked) -> str:
    """The text that answers a call. Never fails, whatever the prompt holds."""
    reading = read(asked.question, english_prompt=asked.english_prompt)
    match asked.role:
        case "decompose":
            return _decompose(reading, asked.max_steps)
        case "execute":
            return _execute(reading, asked.step)
        case "critique":
            return _critique(reading)
        case "synthesize":
            return _synthesize(reading)
        case "classify":
            return str(_complexity(reading, asked.question))
        case "structured":
            filler = itertools.cycle([reading.topic, *texts(reading.locale)["filler"]])
            return json.dumps(value_for(asked.schema or _ANY_OBJECT, filler), ensure_ascii=False)
        case "conversation":
            return _converse(reading, asked.earlier)


_ANY_OBJECT: dict[str, Any] = {"type": "object", "properties": {"answer": {"type": "string"}}}


def plan(reading: Reading, max_steps: int) -> list[str]:
    """The keys of the steps a question is cut into, two to four of them."""
    shape = texts(reading.locale)["plans"][reading.kind]
    limit = max(2, min(MAX_STEPS, max_steps))
    named = [*reading.aspects, *(["limits"] if reading.limits else [])]
    middle = named[: limit - 2] if len(shape["first"]) == 1 else named[: limit - 3]
    for fill in shape["fill"]:
        if len(middle) + len(shape["first"]) + len(shape["last"]) < min(limit, 3) and fill not in middle:
            middle.append(fill)
    keys = [*shape["first"], *middle, *shape["last"]]
    return list(dict.fromkeys(keys[: limit - 1] + keys[-1:] if len(keys) > limit else keys))


def _decompose(reading: Reading, max_steps: int) -> str:
    steps = [
        {"title": _title(key, reading), "goal": _filled(_step(key, reading)["goal"], reading)}
        for key in plan(reading, max_steps)
    ]
    return json.dumps({"steps": steps}, ensure_ascii=False)


def _execute(reading: Reading, step: str) -> str:
    keys = [key for key in texts(reading.locale)["steps"] if key != "generic"]
    matching = [key for key in keys if _title(key, reading) in " ".join(step.split())]
    words = vocabulary(reading.locale)
    asked = clip(" ".join(step.split()), 10, words) or reading.topic
    key = max(matching, key=lambda each: len(_title(each, reading)), default="generic")
    source = _step(key, reading)
    # What is known is said by the first step; the others would only repeat it.
    more = {"step": asked} if key in (plan(reading, MAX_STEPS)[0], "generic") else {"step": asked, "known": ""}
    summary = _one_line(_filled(source["summary"], reading, **more), SUMMARY_CHARACTERS)
    return f"{summary}\n\n{_filled(source['body'], reading, **more)}"


def _critique(reading: Reading) -> str:
    source = texts(reading.locale)["critique"]
    points = [_filled(source["points"][key], reading) for key in _doubts(reading)]
    count = source["one"] if len(points) == 1 else source["many"]
    summary = source["summary"].format(count=count)
    return json.dumps({"satisfied": False, "summary": summary, "weaknesses": points}, ensure_ascii=False)


def _synthesize(reading: Reading) -> str:
    source = texts(reading.locale)["synthesis"]
    parts = [_filled(source["lead"][reading.kind], reading)]
    if reading.kind == "count":
        parts += [source["table"], _table_of_ways(reading)]
    elif reading.kind == "compare":
        parts += [source["table"], _table_of_options(reading)]
    elif reading.kind == "code":
        contract = "\n".join(_filled(line, reading) for line in source["skeleton_lines"])
        parts += [source["skeleton"], f"```text\n{contract}\n```"]
    else:
        items = _items(reading)
        nothing = source["given_knowledge" if reading.kind in KNOWLEDGE else "given_none"]
        given = source["given_items"].format(items=items) if items else nothing
        parts += [source["given"], given]
    actions = (_filled(_step(key, reading)["action"], reading) for key in plan(reading, MAX_STEPS))
    parts += [source["actions"], "\n".join(f"{rank}. {action}" for rank, action in enumerate(actions, 1))]
    doubts = (_filled(source["open_points"][key], reading) for key in _doubts(reading))
    parts += [source["open"], "\n".join(f"- {doubt}" for doubt in doubts)]
    return "\n\n".join([*parts, texts(reading.locale)["note"]])


def _converse(reading: Reading, earlier: tuple[str, ...]) -> str:
    source = texts(reading.locale)
    wordings = source["conversation"].get(reading.kind, source["conversation"]["general"])
    before = ""
    if reading.topic == source["words"]["message"]:
        wordings = source["conversation"]["empty"]
    elif earlier and refers_back(reading.topic if reading.kind == "general" else "", reading.locale):
        wordings = source["conversation"]["followup"]
        before = read(earlier[-1], english_prompt=reading.locale == "en").topic
    rows = source["archetypes"][: reading.count]
    ways = "\n".join(f"{rank}. **{_capital(label)}** — {idea}" for rank, (label, idea, *_) in enumerate(rows, 1))
    answer = _filled(wordings[reading.seed % len(wordings)], reading, earlier=before, archetypes=ways)
    return f"{answer}\n\n{source['note']}"


def _complexity(reading: Reading, question: str) -> int:
    demands = len(reading.aspects) + len(reading.limits) + (reading.kind in ("compare", "count", "organise"))
    return min(5, 1 + demands + len(question.split()) // 50)


def _doubts(reading: Reading) -> list[str]:
    """The two points of the question that most need to be made precise."""
    present = {
        "limits": bool(reading.limits),
        "figures": bool(reading.figures),
        "budget": "budget" in reading.aspects,
        "named": bool(reading.options),
        "schedule": "schedule" in reading.aspects,
        "count": reading.count > 0,
    }
    # A long topic makes a clumsy sentence about its edges.
    usual = ["topic", "known"] if len(reading.topic.split()) <= LONG_TOPIC_WORDS else ["known", "topic"]
    return [*(key for key, holds in present.items() if holds), *usual][:2]


def _table_of_ways(reading: Reading) -> str:
    source = texts(reading.locale)
    one = source["reading"]["units"][reading.unit]
    lines = [source["words"]["table_compare"].format(unit=_capital(one)), "|---|---|---|---|---|"]
    for label, *cells in source["archetypes"][: reading.count]:
        lines.append(f"| **{_capital(label)}** | {' | '.join(cells)} |")
    return "\n".join(lines)


def _table_of_options(reading: Reading) -> str:
    source = texts(reading.locale)
    head = source["words"]["table_named"].format(columns=" | ".join(map(_capital, reading.options)))
    lines = [head, "|---" * (len(reading.options) + 2) + "|"]
    blank = " | ".join([source["words"]["to_note"]] * len(reading.options))
    lines += [f"| {criterion} | {blank} | {decides} |" for criterion, decides in source["criteria_rows"]]
    return "\n".join(lines)


def _step(key: str, reading: Reading) -> dict[str, str]:
    step: dict[str, str] = texts(reading.locale)["steps"][key]
    return step


def _title(key: str, reading: Reading) -> str:
    return clip(_filled(_step(key, reading)["title"], reading), TITLE_WORDS, vocabulary(reading.locale))


def _items(reading: Reading) -> str:
    """What the question fixes, as a list in words; a figure inside a condition isn't said twice."""
    loose = [figure for figure in reading.figures if not any(figure in limit for limit in reading.limits)]
    listing: str = texts(reading.locale)["words"]["listing"]
    return listing.join([*reading.limits, *loose])


def _filled(sentence: str, reading: Reading, **more: str) -> str:
    words = texts(reading.locale)["words"]
    items = _items(reading)
    options = [words["quoted"].format(option) for option in reading.options]
    joined = words["and"].join(filter(None, [words["listing"].join(options[:-1]), *options[-1:]]))
    slots = {
        "topic": reading.topic,
        "number": reading.number,
        "number_capital": _capital(reading.number),
        "unit": reading.unit,
        "options": joined,
        "limits": reading.limits[0] if reading.limits else "",
        "figures": reading.figures[0] if reading.figures else "",
        "known": words["known"].format(items=items) if items else words["unknown"],
    }
    if not items and reading.kind in KNOWLEDGE:
        slots["known"] = ""
    return _capital(sentence.format(**(slots | more)).replace("  ", " "))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _one_line(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:«“") + "…"
