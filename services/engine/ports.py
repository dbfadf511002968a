"""What the engine talks to, as it sees it. One adapter each stands in `adapters/`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from kit.identity import Caller
from services.engine.domain import Alias, Finish, ModelUsage, Node, Question, Started, Turn


class StoreAway(Exception):
    """The store doesn't answer; a write may be repeated, it has one effect."""


class RunClosed(Exception):
    """The run was closed by somebody else; nothing more can be written in its name."""


class ModelFailed(Exception):
    """A model call failed for good. The text never quotes a prompt or an answer."""

    def __init__(self, reason: str, retryable: bool, usage: ModelUsage | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.usage = usage


class Store(Protocol):
    """Conversations, trees and the ledger of runs."""

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        """Store the user's message and the run. Raises kit.errors.RemoteError as the caller shall see it."""

    async def heartbeat(self, run_id: str, caller: Caller) -> None:
        """Say that a run is alive. Raises RunClosed, StoreAway."""

    async def append(self, run_id: str, nodes: Sequence[Node], caller: Caller) -> None:
        """Add finished nodes. Raises RunClosed, StoreAway."""

    async def finish(self, finish: Finish, caller: Caller) -> None:
        """End a run. Raises RunClosed, StoreAway."""

    async def check_run(self, run_id: str, caller: Caller) -> None:
        """Raise kit.errors.RemoteError when this user has no such run."""

    async def history(self, conversation_id: str, node_id: str, caller: Caller) -> list[Turn]:
        """The messages along a node's lineage, the oldest in front. Raises kit.errors.RemoteError."""


@dataclass(frozen=True)
class Lease:
    """The answer to asking for a slot."""

    granted: bool
    denial: Literal["", "busy", "unavailable"]


class Quota(Protocol):
    """Who may think, and how many at once."""

    async def acquire(self, lease_id: str, caller: Caller) -> Lease:
        """Ask for a slot; silence of 200 ms is a denial, `unavailable`."""

    async def renew(self, lease_id: str, caller: Caller) -> None:
        """Keep a slot; doesn't raise when quota is away."""

    async def release(self, lease_id: str, caller: Caller) -> None:
        """Give a slot back; doesn't raise when quota is away: the lease expires."""


@dataclass(frozen=True)
class ModelCall:
    """One call: who is asked, and what it sees."""

    alias: Alias
    system: str
    turns: Sequence[Turn]
    schema: Mapping[str, Any] | None = None
    """JSON Schema asked for, where the provider supports it."""


@dataclass(frozen=True)
class Reply:
    """What came of a call; a stream ends with one whose text is everything that was streamed."""

    text: str
    usage: ModelUsage
    cost_eur: float
    fallback_from: str = ""
    """The model that should have served, when another one did."""


class Model(Protocol):
    """Chat models behind aliases. A model that fails is tried again, then the next one down is asked."""

    async def ask(self, call: ModelCall) -> Reply:
        """The whole answer. Raises ModelFailed."""

    def stream(self, call: ModelCall) -> AsyncGenerator[str | Reply, None]:
        """Pieces, then a Reply. Raises ModelFailed, also after pieces; closing it closes the call."""

    def estimate(self, call: ModelCall, text: str) -> Reply:
        """What a call that was cut short has used by now, estimated."""
