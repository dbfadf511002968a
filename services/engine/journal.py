"""The journal of a run: what it has said, stored and used so far. Whatever ends a run, this is what is kept of it."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime

from kit.identity import Caller
from kit.ids import new_id
from services.engine.domain import Bill, Degraded, Details, Ending, Finish, Node, Question, Started
from services.engine.events import Content, EventLog
from services.engine.ports import Reply, Store, StoreAway


class Journal:
    """One run, from its acceptance to its end."""

    def __init__(self, question: Question, started: Started, caller: Caller, store: Store, log: EventLog) -> None:
        self.question = question
        self.started = started
        self.caller = caller
        self.log = log
        self.bill = Bill()
        self.nodes: list[Node] = []
        """Finished nodes in order, those that failed included."""
        self.answer: Node | None = None
        """The node of the answer; None while nothing has been said."""
        self.answer_id = new_id()
        """The id of the answer's message."""
        self.mode = started.mode
        self.mode_chosen_by_user = started.mode_chosen_by_user
        self.schema = ""
        self.complexity = 0
        self.display_template = "default"
        self.degraded: Degraded = ""
        self.partial = False
        """A step failed, or the answer was cut short."""
        self.began_at = datetime.now(UTC)
        self._store = store
        self._unsaved: list[Node] = []
        self._began = time.monotonic()
        self._fallbacks = 0
        self._retries = 0

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.started.run_id

    @property
    def duration_ms(self) -> int:
        """How long the run has taken."""
        return int((time.monotonic() - self._began) * 1000)

    def say(self, piece: str) -> None:
        """Send a piece of the answer."""
        self.log.emit(Content(piece))

    def charge(self, reply: Reply) -> None:
        """Count what a call used."""
        self.bill.add(reply.usage, reply.cost_eur)
        for usage in reply.failed:
            self.bill.add(usage, 0.0)
        self._fallbacks += bool(reply.fallback_from)
        self._retries += reply.retries

    async def record(self, node: Node) -> None:
        """Store a finished node. While the store is away it waits and goes with the next one. Raises RunClosed."""
        self.nodes.append(node)
        self._unsaved.append(node)
        batch = tuple(self._unsaved)
        try:
            await self._store.append(self.run_id, batch, self.caller)
        except StoreAway:
            return
        self._unsaved = [waiting for waiting in self._unsaved if waiting not in batch]

    def conclude(self, node: Node) -> None:
        """Keep the answer's node; it is stored with the end of the run, in one transaction."""
        self.nodes.append(node)
        self.answer = node

    @property
    def details(self) -> Details:
        """What is kept of the run besides its nodes."""
        return Details(
            schema=self.schema,
            mode=self.mode,
            complexity=self.complexity,
            display_template=self.display_template,
            duration_ms=self.duration_ms,
            degraded=self.degraded,
            cost_eur=self.bill.cost_eur,
            node_count=len(self.nodes),
            fallbacks=self._fallbacks,
            retries=self._retries,
        )

    def finish(self, ending: Ending, last_seq: int) -> Finish:
        """Everything the ledger stores at the end. `last_seq` is the number that `done` will have."""
        answer = self.answer
        nodes: Sequence[Node] = self._unsaved if answer is None else (*self._unsaved, answer)
        return Finish(
            run_id=self.run_id,
            ending=ending,
            partial=self.partial or ending is not Ending.DONE,
            message_id=self.answer_id if answer else "",
            content=answer.content if answer else "",
            nodes=tuple(nodes),
            active_node_id=answer.id if answer else "",
            usage=tuple(self.bill.lines.values()),
            details=self.details,
            mode=self.mode,
            mode_chosen_by_user=self.mode_chosen_by_user,
            model=answer.model if answer else "",
            last_seq=last_seq,
        )
