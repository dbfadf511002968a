"""The OpenAI chat-completions format: the request's body, and what is read out of an answer."""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import orjson

from kit.model.chat import ChatRequest, Usage
from kit.model.tokens import TokenRates
from kit.text import clean, one_line

OPTIONAL_FIELDS = ("stream_options", "response_format")
"""Fields of ours that a server may not know; it is then asked without them."""

_UNKNOWN_FIELD = re.compile(
    r"unknown|unrecogni[sz]ed|unsupported|not.support|unavailable|extra|not permitted|not allowed|unexpected"
)
_INVALID_SCHEMA = re.compile(r"invalid schema")
_LONGEST_NAME = 200


def request_body(request: ChatRequest, *, stream: bool, without: Collection[str]) -> dict[str, Any]:
    """The body of a chat request, less the optional fields named by `without`."""
    body: dict[str, Any] = {
        "model": request.model,
        "messages": [{"role": message.role, "content": clean(message.content)} for message in request.messages],
    }
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.json_schema is not None:
        schema = {"name": request.schema_name, "schema": dict(request.json_schema), "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    return {name: value for name, value in body.items() if name not in without}


def unknown_fields(answer: str, body: Mapping[str, Any]) -> set[str]:
    """Which optional fields of `body` a server's 400 or 422 says it doesn't know.

    A schema it finds invalid is a fault of ours, not a field it doesn't know.
    """
    text = answer.lower().replace("response format", "response_format")
    if _INVALID_SCHEMA.search(text) or not _UNKNOWN_FIELD.search(text):
        return set()
    return {name for name in OPTIONAL_FIELDS if name in body and name in text}


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that the text is, or None if it isn't one. A byte that isn't UTF-8 is read as U+FFFD."""
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig", "replace")
    try:
        # Three times as fast, and one of these is read for each piece of an answer.
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        # It refuses lone surrogates, which servers do send when they cut a character in two.
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def is_error(payload: Mapping[str, Any]) -> bool:
    """Whether a body or frame that came with a 200 reports an error."""
    return bool(payload.get("error")) or payload.get("object") == "error"


def first_choice(payload: Mapping[str, Any], part: str) -> tuple[dict[str, Any], str | None]:
    """The `message` or `delta` of the first choice, empty where there is none, and its finish reason."""
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return {}, None
    content = choice.get(part)
    finish = choice.get("finish_reason")
    return content if isinstance(content, dict) else {}, _name(finish)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message or delta; of content in parts, the text parts (Mistral also sends thinking parts)."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type", "text") == "text")
    return "".join(text for text in parts if isinstance(text, str))


def generated_characters(message: Mapping[str, Any]) -> int:
    """Characters the model wrote into a message or delta, its reasoning included: they are paid for, too."""
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    hidden = len(reasoning) if isinstance(reasoning, str) else 0
    return hidden + _characters(message.get("content"))


def usage_of(reported: object, request: ChatRequest, characters: int, rates: TokenRates) -> Usage:
    """The usage a server reported; what it left out is estimated from the prompt and the characters generated."""
    numbers = reported if isinstance(reported, dict) else {}
    sent = _count(numbers.get("prompt_tokens"))
    received = _count(numbers.get("completion_tokens"))
    return Usage(
        input_tokens=rates.prompt(request.messages) if sent is None else sent,
        output_tokens=rates.answer(characters) if received is None else received,
        estimated=sent is None or received is None,
    )


def served_model(payload: Mapping[str, Any]) -> str | None:
    """The name of the model that a server says it served."""
    return _name(payload.get("model"))


def _name(value: object) -> str | None:
    return one_line(clean(value))[:_LONGEST_NAME] or None if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _characters(content: object, depth: int = 4) -> int:
    """Characters of content in parts, as deep as any server nests them."""
    if isinstance(content, str):
        return len(content)
    if depth and isinstance(content, list):
        return sum(_characters(part, depth - 1) for part in content)
    if depth and isinstance(content, dict):
        return sum(_characters(content.get(name), depth - 1) for name in ("text", "thinking"))
    return 0
