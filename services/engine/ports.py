"""What the engine talks to, as it sees it. One adapter each stands in `adapters/`."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol

from kit.identity import Caller
from services.engine.domain import (
    Alias,
    Details,
    Ending,
    Finish,
    ModelUsage,
    Node,
    Question,
    RunRecord,
    Started,
    Turn,
    Unsettled,
)
from services.engine.events import Numbered


class StoreAway(Exception):
    """The store doesn't answer; a write may be repeated, it has one effect."""


class RunClosed(Exception):
    """The run was closed by somebody else; nothing more can be written in its name."""


class QuotaAway(Exception):
    """Quota doesn't answer; a write may be repeated, it has one effect."""


class ReplayAway(Exception):
    """The replay log doesn't answer; a write may be repeated, it has one effect."""


class ReplayClosed(Exception):
    """Another process has written the end of this run's replay log; nothing more is taken."""


class ReplayBehind(Exception):
    """The replay log lacks events before those given (its server lost them): go on after `last_seq`, 0: from the start.

    Nothing of what was given has been written.
    """

    def __init__(self, last_seq: int) -> None:
        super().__init__(f"the log ends at {last_seq}")
        self.last_seq = last_seq


class ModelFailed(Exception):
    """A model call failed for good. The text never quotes a prompt or an answer.

    `spent` is what it used all the same, to be charged like an answer; None: nothing that is known of.
    """

    def __init__(self, reason: str, retryable: bool, spent: "Reply | None" = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retryable = retryable
        self.spent = spent


class Store(Protocol):
    """Conversations, trees and the ledger of runs."""

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        """Store the user's message and the run, or find the one its idempotency key has started before.

        Raises kit.errors.RemoteError as the caller shall see it.
        """

    async def heartbeat(self, run_id: str, last_seq: int, caller: Caller) -> bool:
        """Say that a run is alive. True: the user wants it to end. Raises RunClosed, StoreAway."""

    async def append(self, run_id: str, nodes: Sequence[Node], caller: Caller) -> None:
        """Add finished nodes. Raises RunClosed, StoreAway."""

    async def finish(self, finish: Finish, caller: Caller) -> None:
        """End a run. Raises RunClosed, StoreAway."""

    async def get_run(self, run_id: str, caller: Caller) -> RunRecord:
        """A run of this user's. Raises kit.errors.RemoteError (NOT_FOUND), StoreAway."""

    async def list_runs(
        self, page_size: int, page_token: str, conversation_id: str, active_only: bool, caller: Caller
    ) -> tuple[list[RunRecord], str]:
        """A page of this user's runs, and the token of the next one. Raises kit.errors.RemoteError."""

    async def request_stop(self, run_id: str, caller: Caller) -> None:
        """Note that the user wants a run to end. Raises kit.errors.RemoteError when this user has no such run."""

    async def unsettled(self) -> list[Unsettled]:
        """Close the runs whose engine is silent; those that ended and aren't in the books. Raises StoreAway."""

    async def settle(self, run_id: str, caller: Caller) -> None:
        """Note that a run is in the books. Raises StoreAway."""

    async def history(self, conversation_id: str, node_id: str, caller: Caller) -> list[Turn]:
        """The messages along a node's lineage, the oldest in front. Raises kit.errors.RemoteError."""


@dataclass(frozen=True)
class RunUsage:
    """One run for the books."""

    run_id: str
    ending: Ending
    usage: tuple[ModelUsage, ...]
    details: Details
    partial: bool
    started_at: datetime


@dataclass(frozen=True)
class Lease:
    """The answer to asking for a slot."""

    granted: bool
    denial: Literal["", "busy", "unavailable"]


class Quota(Protocol):
    """Who may think, and how many at once."""

    async def acquire(self, lease_id: str, caller: Caller) -> Lease:
        """Ask for a slot; silence of half a second is a denial, `unavailable`."""

    async def renew(self, lease_id: str, caller: Caller) -> None:
        """Keep a slot; doesn't raise when quota is away."""

    async def release(self, lease_id: str, caller: Caller) -> None:
        """Give a slot back; doesn't raise when quota is away: the lease expires."""

    async def record(self, usage: RunUsage, caller: Caller) -> None:
        """Enter a run in the books; again changes nothing. Raises QuotaAway."""


class Replay(Protocol):
    """The events of runs, sealed, where every replica can read them, until an hour after a run's end."""

    async def append(self, run_id: str, key: bytes, events: Sequence[Numbered]) -> None:
        """Add events in order; those that are there already are left as they are.

        Raises ReplayAway, ReplayClosed, ReplayBehind.
        """

    async def read(self, run_id: str, key: bytes, after: int, limit: int = 500) -> list[Numbered]:
        """At most `limit` events after number `after`, in order. Raises ReplayAway."""


class Stops(Protocol):
    """Tells every replica that a run shall end."""

    async def send(self, run_id: str) -> None:
        """Tell them. Doesn't raise when they can't be reached: the run's next heartbeat will know."""

    def listen(self) -> AsyncGenerator[str, None]:
        """The ids of the runs that shall end, as they come; goes on by itself after the server was away."""


@dataclass(frozen=True, eq=False)
class ModelCall:
    """One call: who is asked, and what it sees. Two calls are two, also when they say the same."""

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
    """Of the try that answered, or of the last one when none did."""
    cost_eur: float
    """Of the whole call, tries that failed included."""
    fallback_from: str = ""
    """The model that should have served, when another one did."""
    retries: int = 0
    """How often a model was asked once more after it had failed."""
    failed: tuple[ModelUsage, ...] = ()
    """What tries that failed before the last one used, by the model they were made of."""


class Model(Protocol):
    """Chat models behind aliases. A model that fails is tried again, then the next one down is asked."""

    async def ask(self, call: ModelCall) -> Reply:
        """The whole answer. Raises ModelFailed."""

    def stream(self, call: ModelCall) -> AsyncGenerator[str | Reply, None]:
        """Pieces, then a Reply. Raises ModelFailed, also after pieces; closing it closes the call."""

    def estimate(self, call: ModelCall, text: str) -> Reply:
        """What a call used that was cancelled or ran out of time, after it had given `text`; estimated.

        It is known while the call is kept.
        """
