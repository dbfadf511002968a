"""The bodies of the OpenAI chat completion API: tokens, messages, stream frames, errors."""

import json
import math
import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

CHARACTERS_PER_TOKEN: Final = 4
MESSAGE_OVERHEAD_TOKENS: Final = 4
PIECE = re.compile(r"\s*\S{1,8}|\s+")
DONE: Final = b"data: [DONE]\n\n"


def count_tokens(text: str) -> int:
    """Tokens of a text by the trial model's measure: four characters each, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def count_prompt_tokens(messages: Iterable[dict[str, Any]]) -> int:
    """Tokens of a prompt: its texts, plus a constant per message."""
    return sum(count_tokens(text_of(message)) + MESSAGE_OVERHEAD_TOKENS for message in messages)


def text_of(message: dict[str, Any]) -> str:
    """The text of a message whose content is a string or a list of parts; "" when there is none."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in parts if isinstance(text, str))
    return ""


def pieces_of(text: str) -> list[str]:
    """The text cut into the pieces a stream sends, a word or so each; joined they are the text."""
    return PIECE.findall(text)


def encoded(value: object) -> bytes:
    """JSON as bytes, characters unescaped; a lone surrogate stays an escape, as UTF-8 has no form for it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def frame(value: object) -> bytes:
    """One server-sent event holding JSON."""
    return b"data: " + encoded(value) + b"\n\n"


def error_body(
    message: str, *, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error as OpenAI-compatible servers report it. The message must not hold the caller's content."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def usage_of(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """The usage object of an answer."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


@dataclass(frozen=True)
class Envelope:
    """What all bodies of one answer share."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))

    def message(
        self, text: str, *, reasoning: str | None, finish_reason: str, usage: dict[str, Any] | None
    ) -> dict[str, Any]:
        """A whole answer in one body."""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        body = self._base("chat.completion")
        body["choices"] = [{"index": 0, "message": message, "finish_reason": finish_reason}]
        if usage is not None:
            body["usage"] = usage
        return body

    def chunk(
        self, delta: dict[str, Any], *, finish_reason: str | None = None, announces_usage: bool
    ) -> dict[str, Any]:
        """One piece of a streamed answer; with usage to come at the end, every piece says it has none."""
        body = self._base("chat.completion.chunk")
        body["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
        if announces_usage:
            body["usage"] = None
        return body

    def usage_chunk(self, usage: dict[str, Any]) -> dict[str, Any]:
        """The last piece of a stream that was asked to include usage."""
        return {**self._base("chat.completion.chunk"), "choices": [], "usage": usage}

    def _base(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}
