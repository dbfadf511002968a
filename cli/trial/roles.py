"""Which role of a think a call plays, told from its prompt alone, as any model would have to.

The prompts are those of `services/engine/prompts`: the question, the plan, the earlier work, the step and the review
each stand between tags on their own lines, and the JSON forms are spelt out below them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cli.trial.completion import text_of

Role = Literal["decompose", "execute", "critique", "synthesize", "classify", "structured", "conversation"]

_TAGS = ("question", "previous", "critique", "plan", "step")
_AT_MOST = re.compile(r"\b(?:au plus|at most) (\d+)")
_DIGIT_ONLY = ("réponds uniquement par le chiffre", "answer with the digit only")
_ENGLISH_PROMPT = ("The request as a whole", "Here is the request", "Answer in JSON only", "Answer with the digit")


@dataclass(frozen=True)
class Asked:
    """What a call asks for."""

    role: Role
    question: str
    """The user's question, without the prompt around it."""
    step: str = ""
    """The step to work on (role `execute`)."""
    max_steps: int = 4
    """How many steps a plan may have (role `decompose`)."""
    earlier: tuple[str, ...] = ()
    """The user's messages before the question, oldest first (role `conversation`)."""
    english_prompt: bool = False
    """Whether the prompt around the question is in English: decides where the question itself doesn't say."""
    schema: dict[str, Any] | None = None
    """The JSON schema to fit (role `structured`); None: any object."""


def asked(messages: Sequence[dict[str, Any]], response_format: object) -> Asked:
    """Tell what a call asks for. Never fails: what isn't recognised is a conversation."""
    texts = [text_of(message) for message in messages if message.get("role") == "user"]
    prompt = texts[-1] if texts else ""
    everything = "\n".join(text_of(message) for message in messages)
    english = any(mark in everything for mark in _ENGLISH_PROMPT)
    blocks, around = _taken_apart(prompt)
    if any(mark in everything.lower() for mark in _DIGIT_ONLY):
        return Asked("classify", blocks.get("question", prompt), english_prompt=english)
    if "question" in blocks and (role := _role_in_think(blocks, around)) is not None:
        limit = _AT_MOST.search(around) if role == "decompose" else None
        return Asked(
            role,
            blocks["question"],
            step=blocks.get("step", ""),
            max_steps=int(limit[1]) if limit else 4,
            english_prompt=english,
        )
    if isinstance(response_format, dict) and response_format.get("type") in ("json_schema", "json_object"):
        described = response_format.get("json_schema")
        schema = described.get("schema") if isinstance(described, dict) else None
        return Asked("structured", prompt, english_prompt=english, schema=schema if isinstance(schema, dict) else None)
    return Asked("conversation", prompt, earlier=tuple(texts[:-1]), english_prompt=english)


def _taken_apart(prompt: str) -> tuple[dict[str, str], str]:
    """The texts between tags, and the prompt without them. The question goes first: it may quote any tag."""
    blocks: dict[str, str] = {}
    around = f"\n{prompt}\n"
    for tag in _TAGS:
        start = around.find(f"\n<{tag}>\n")
        end = around.find(f"\n</{tag}>\n", start + len(tag) + 3)
        if start >= 0 and end >= 0:
            blocks[tag] = around[start + len(tag) + 4 : end].strip()
            around = around[:start] + around[end + len(tag) + 4 :]
    return blocks, around


def _role_in_think(blocks: dict[str, str], around: str) -> Role | None:
    if '"steps"' in around:
        return "decompose"
    if '"satisfied"' in around:
        return "critique"
    if "step" in blocks:
        return "execute"
    if "critique" in blocks:
        return "synthesize"
    return None
