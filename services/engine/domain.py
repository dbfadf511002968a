"""What the engine thinks in: nodes, turns, questions and what they cost. Standard library only."""

from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Started:
    """What a run starts from, as the ledger has it."""

    run_id: str
    conversation_id: str
    message_id: str
    parent_node_id: str
    mode: str
    """The conversation's mode before this run; empty: none yet."""
    mode_chosen_by_user: bool


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


@dataclass
class Bill:
    """What a run has used so far, by the model that served."""

    lines: dict[str, ModelUsage] = field(default_factory=dict)
    cost_eur: float = 0.0

    def add(self, usage: ModelUsage, cost_eur: float) -> None:
        """Count one call."""
        before = self.lines.get(usage.model, ModelUsage(usage.model, 0, 0, False))
        self.lines[usage.model] = ModelUsage(
            usage.model,
            before.input_tokens + usage.input_tokens,
            before.output_tokens + usage.output_tokens,
            before.estimated or usage.estimated,
        )
        self.cost_eur += cost_eur

    @property
    def input_tokens(self) -> int:
        """Tokens read by all models."""
        return sum(line.input_tokens for line in self.lines.values())

    @property
    def output_tokens(self) -> int:
        """Tokens written by all models."""
        return sum(line.output_tokens for line in self.lines.values())
