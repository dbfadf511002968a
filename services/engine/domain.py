"""What the engine thinks in: nodes, turns, questions and what they cost. Standard library only."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

Alias = Literal["small", "large", "codestral", "pixtral"]
ALIASES: tuple[Alias, ...] = ("small", "large", "codestral", "pixtral")

Degraded = Literal["", "busy", "killed", "quota", "unavailable", "failed"]
"""Why a think became a classic answer; empty: it didn't."""


class Role(StrEnum):
    """What a node does (seed 4.2)."""

    DECOMPOSE = "decompose"
    EXECUTE = "execute"
    CRITIQUE = "critique"
    SYNTHESIZE = "synthesize"
    CONVERSATION = "conversation"


class Status(StrEnum):
    """What became of a node (seed 4.2)."""

    EXPLORED = "explored"
    SELECTED = "selected"
    PRUNED = "pruned"


class Thinking(StrEnum):
    """Whether the user wants a think."""

    AUTO = "auto"
    ON = "on"
    OFF = "off"


class Ending(StrEnum):
    """How a run ends."""

    DONE = "done"
    PARTIAL = "partial"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class Node:
    """One finished step of thought."""

    id: str
    parents: tuple[str, ...]
    role: Role
    status: Status
    summary: str
    content: str
    model: str
    run_id: str
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: int = 0
    branch: str = ""
    score: float | None = None
    message_id: str = ""
    failure: str = ""
    fallback_from: str = ""


@dataclass(frozen=True)
class Turn:
    """One message of the history."""

    role: Literal["user", "assistant"]
    content: str


@dataclass(frozen=True)
class Question:
    """What a user asks, checked."""

    message: str
    conversation_id: str
    """Empty: a new conversation."""
    parent_node_id: str | None
    """The node to continue; None: the active one; empty: the root."""
    mode: str
    """The slug the user chose; empty: the conversation's, or detected."""
    thinking: Thinking
    model: Alias | None
    locale: Literal["fr", "en"]
    idempotency_key: str = ""
    """The user's name for this request; empty: none."""
    request_hash: bytes = b""
    """SHA-256 of the request that came with the key."""


@dataclass(frozen=True)
class Started:
    """What a run starts from, as the ledger has it."""

    run_id: str
    """Another one than was asked for when the request's idempotency key came before: that run is the answer."""
    conversation_id: str
    message_id: str
    parent_node_id: str
    mode: str
    """The conversation's mode before this run; empty: none yet."""
    mode_chosen_by_user: bool
    event_key: bytes = field(default=b"", repr=False)
    """Seals the run's events."""


@dataclass(frozen=True)
class Details:
    """What a reload shows of a run besides its nodes."""

    schema: str
    mode: str
    complexity: int
    display_template: str
    duration_ms: int
    degraded: Degraded
    cost_eur: float
    node_count: int = 0
    fallbacks: int = 0
    """Calls that another model served than the one that should have."""
    retries: int = 0
    """Calls that were tried again."""


@dataclass(frozen=True)
class ModelUsage:
    """What one model was used for in a run."""

    model: str
    input_tokens: int
    output_tokens: int
    estimated: bool


@dataclass(frozen=True)
class Finish:
    """How a run ended: everything the ledger stores in one transaction."""

    run_id: str
    ending: Ending
    partial: bool
    message_id: str
    content: str
    nodes: tuple[Node, ...]
    active_node_id: str
    usage: tuple[ModelUsage, ...]
    details: Details
    mode: str
    mode_chosen_by_user: bool
    model: str
    last_seq: int = 0
    """The number of the run's last event, `done`."""


@dataclass(frozen=True)
class RunRecord:
    """A run as the ledger has it."""

    run_id: str
    conversation_id: str
    status: Literal["running", "done", "partial", "stopped", "failed"]
    partial: bool
    """It ended other than done, its heartbeat is stale, or a step failed on the way."""
    abandoned: bool
    """It was closed because its heartbeat was stale, not by its engine."""
    last_seq: int
    """The number of its last event, as far as its engine has said: exact once it has ended by itself."""
    answer_id: str
    answer_node_id: str
    details: Details
    usage: tuple[ModelUsage, ...]
    started_at: datetime
    ended_at: datetime | None
    heartbeat_at: datetime | None = None
    """When its engine last said that it was alive."""
    event_key: bytes = field(default=b"", repr=False)

    @property
    def silent(self) -> bool:
        """It is to be running, but its engine has said nothing for too long."""
        return self.status == "running" and self.partial


@dataclass(frozen=True)
class Unsettled:
    """A run that has ended and whose usage isn't in the books yet."""

    run: RunRecord
    owner: str
    subscription: str


@dataclass
class Bill:
    """What a run has used so far, by the model that served."""

    lines: dict[str, ModelUsage] = field(default_factory=dict)
    cost_eur: float = 0.0

    def add(self, usage: ModelUsage, cost_eur: float) -> None:
        """Count one try of a call; one that used nothing leaves no line."""
        self.cost_eur += cost_eur
        if not (usage.input_tokens or usage.output_tokens):
            return
        before = self.lines.get(usage.model, ModelUsage(usage.model, 0, 0, False))
        self.lines[usage.model] = ModelUsage(
            usage.model,
            before.input_tokens + usage.input_tokens,
            before.output_tokens + usage.output_tokens,
            before.estimated or usage.estimated,
        )

    @property
    def input_tokens(self) -> int:
        """Tokens read by all models."""
        return sum(line.input_tokens for line in self.lines.values())

    @property
    def output_tokens(self) -> int:
        """Tokens written by all models."""
        return sum(line.output_tokens for line in self.lines.values())
