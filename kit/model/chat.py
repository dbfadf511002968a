"""What is asked of a chat model and what it gives back.

Fields that hold content stay out of every `repr`, so that none of it reaches a log or a traceback.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Message:
    """One message of a conversation with a model."""

    role: Literal["system", "user", "assistant"]
    content: str = field(repr=False)


@dataclass(frozen=True)
class Usage:
    """Tokens of one answer. `estimated` is true where the server named no number for one of the two."""

    input_tokens: int
    output_tokens: int
    estimated: bool


@dataclass(frozen=True)
class ChatRequest:
    """One question to a model.

    `max_tokens` and `temperature` are left to the server when None. With `json_schema`, the answer is asked for as JSON
    of that schema, under the name `schema_name`; a server that knows no schemas is asked without, so the caller reads
    the answer tolerantly.
    """

    model: str
    messages: Sequence[Message] = field(repr=False)
    max_tokens: int | None = None
    temperature: float | None = None
    json_schema: Mapping[str, Any] | None = field(default=None, repr=False)
    schema_name: str = "answer"


@dataclass(frozen=True)
class Completion:
    """A whole answer. `model` is the name of the model the server says it served."""

    text: str = field(repr=False)
    usage: Usage
    model: str


@dataclass(frozen=True)
class Piece:
    """A piece of a streamed answer, never empty."""

    text: str = field(repr=False)


@dataclass(frozen=True)
class End:
    """The last item of a stream that ended well. `finish_reason` is the server's word, such as "stop" or "length"."""

    usage: Usage
    model: str
    finish_reason: str | None
