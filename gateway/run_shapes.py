"""Shapes of a question, of the run that answers it, and of the answer."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from gateway.languages import Locale
from gateway.shapes import ID_CHARACTERS, Incoming, Thinking

MESSAGE_BYTES = 256 * 1024


class Question(Incoming):
    """A question to answer."""

    message: str = Field(description="At most 256 KiB.")
    conversation_id: str | None = Field(None, max_length=ID_CHARACTERS, description="Absent: a new conversation.")
    parent_node_id: str | None = Field(
        None, max_length=ID_CHARACTERS, description="The node to continue; absent: the active one; empty: the root."
    )
    mode: str | None = Field(None, max_length=ID_CHARACTERS, description="A mode's slug; absent: it is detected.")
    thinking: Literal["auto", "on", "off"] = "auto"
    model: str | None = Field(None, max_length=ID_CHARACTERS, description="small, large, codestral or pixtral.")
    locale: Locale | None = Field(None, description="Absent: by Accept-Language.")


class RunBegun(BaseModel):
    """A run that has begun."""

    run_id: str
    conversation_id: str
    events_url: str = Field(
        description="Where its events are, relative to this server; with a token for this one run, good for two hours."
    )


class Run(BaseModel):
    """A run, as far as is known."""

    run_id: str
    conversation_id: str
    status: Literal["running", "done", "partial", "stopped", "failed"]
    started_at: str
    ended_at: str | None
    last_seq: int = Field(description="The number of its last event.")


class Runs(BaseModel):
    """A page of runs, the one that began last in front."""

    items: list[Run]
    next_cursor: str | None


class AnswerMessage(BaseModel):
    """The answer's message."""

    id: str | None
    role: Literal["assistant"]
    content: str


class Notice(BaseModel):
    """Something that went wrong on the way to an answer."""

    code: str
    message: str
    retryable: bool


class Answer(BaseModel):
    """An answer, whole."""

    message: AnswerMessage
    thinking: Thinking | None
    sources: list[dict[str, Any]]
    notices: list[Notice]
    conversation_id: str
    run_id: str
    node_id: str | None
    model: str | None
    tokens_used: int
    cost_eur: float
    partial: bool
    degraded: Literal["busy", "killed", "quota", "unavailable", "failed"] | None
