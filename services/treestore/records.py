"""What treestore keeps besides trees: conversations, messages and runs."""

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from services.treestore.sealing import DataKey


class Author(StrEnum):
    """Who wrote a message."""

    USER = "user"
    ASSISTANT = "assistant"


class ModeSource(StrEnum):
    """Who chose a conversation's mode."""

    NOBODY = ""
    USER = "user"
    DETECTED = "detected"


class RunStatus(StrEnum):
    """Where a run stands."""

    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Conversation:
    """A conversation, opened."""

    id: uuid.UUID
    owner: str
    title: str
    mode: str
    mode_source: ModeSource
    active_node_id: str
    created_at: datetime
    updated_at: datetime
    key: DataKey = field(repr=False)
    """Seals and opens what hangs on it."""


@dataclass(frozen=True)
class Usage:
    """What a run cost with one model."""

    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool


@dataclass(frozen=True)
class Details:
    """What a reload shows of a run besides its nodes."""

    schema: str = ""
    mode: str = ""
    complexity: int = 0
    display_template: str = ""
    duration_ms: int = 0
    degraded: str = ""
    cost_eur: float = 0.0
    node_count: int = 0
    fallbacks: int = 0
    """Calls that another model served than the one that should have."""
    retries: int = 0
    """Calls that were tried again."""


@dataclass(frozen=True)
class Run:
    """One question on its way to an answer."""

    id: uuid.UUID
    conversation_id: uuid.UUID
    status: RunStatus
    partial: bool
    """It ended other than done, its heartbeat is stale, or a step failed on the way."""
    abandoned: bool
    """It was closed by another than its engine."""
    message_id: uuid.UUID
    answer_id: uuid.UUID | None
    answer_node_id: str
    parent_node_id: str
    last_seq: int
    """The number of its last event, as far as its engine has said."""
    usage: tuple[Usage, ...]
    details: Details
    heartbeat_at: datetime
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True)
class Active:
    """A run that goes on, as far as one must know to close it."""

    run_id: uuid.UUID
    conversation_id: uuid.UUID
    owner: str
    stale: bool
    """Nobody has said for too long that it is alive."""
    heartbeat_at: datetime
    created_at: datetime


@dataclass(frozen=True)
class Unsettled:
    """A run that has ended and isn't in the books yet: what they need, and no text."""

    run_id: uuid.UUID
    conversation_id: uuid.UUID
    owner: str
    subscription: str
    status: RunStatus
    partial: bool
    abandoned: bool
    last_seq: int
    usage: tuple[Usage, ...]
    details: Details
    """Its slugs, counts, cost and duration; the rest is empty."""
    heartbeat_at: datetime
    created_at: datetime
    ended_at: datetime


@dataclass(frozen=True)
class Message:
    """One turn of a conversation, opened."""

    id: uuid.UUID
    author: Author
    content: str
    reply_to: uuid.UUID | None
    run_id: uuid.UUID
    node_id: str
    model: str
    tokens: int
    created_at: datetime
    run: Run | None
    """What its run left, on an answer only."""


@dataclass(frozen=True)
class Start:
    """A question that was accepted."""

    run_id: uuid.UUID
    message_id: uuid.UUID
    conversation_id: uuid.UUID
    new_conversation: bool
    message: str
    title: str
    parent_node_id: str | None
    """None: the active node; empty: the root."""
    idempotency_key: str = ""
    """The user's name for this request; empty: none."""
    request_hash: bytes = b""
    """SHA-256 of the request that the key came with."""
    subscription: str = ""
    """The user's, for the books."""


@dataclass(frozen=True)
class Answer:
    """What a run says in the end."""

    message_id: uuid.UUID
    content: str
    node_id: str
    model: str
