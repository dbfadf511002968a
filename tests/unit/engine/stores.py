"""What replicas of the engine share, in memory: the ledger, the replay log and the word of stops."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import grpc

from kit.errors import RemoteError
from kit.identity import Caller
from kit.ids import new_id
from services.engine.domain import Details, Finish, Node, Question, RunRecord, Started, Turn, Unsettled
from services.engine.events import Done, Numbered
from services.engine.ports import ReplayAway, ReplayBehind, ReplayClosed, RunClosed, StoreAway

NOTHING = Details("", "", 0, "default", 0, "", 0.0)


@dataclass
class Entry:
    """One run of the ledger, and what only the ledger knows of it."""

    record: RunRecord
    owner: str
    subscription: str
    started: Started
    key: str
    request_hash: bytes
    stop_requested: bool = False
    settled: bool = False


class MemoryStore:
    """Keeps what it is given; can be away, or say that every run is closed."""

    def __init__(self, turns: Sequence[Turn] = (), mode: str = "", chosen: bool = False, parent: str = "") -> None:
        self.turns = list(turns)
        self.mode, self.chosen, self.parent = mode, chosen, parent
        self.nodes: list[Node] = []
        self.finished: list[Finish] = []
        self.entries: dict[str, Entry] = {}
        self.titles: list[str] = []
        self.away = 0
        """How many of the next writes find nobody."""
        self.unreadable = False
        """Whether reads find nobody."""
        self.closed = False
        self.asked = 0
        """How often a run was read."""

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        for entry in self.entries.values():
            if question.idempotency_key and (entry.owner, entry.key) == (caller.user, question.idempotency_key):
                if entry.request_hash != question.request_hash:
                    raise RemoteError(grpc.StatusCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED", "another request")
                return entry.started
        self.titles.append(title)
        conversation, now = question.conversation_id or new_id(), datetime.now(UTC)
        started = Started(run_id, conversation, new_id(), self.parent, self.mode, self.chosen, run_id.encode()[:32])
        record = RunRecord(
            run_id, conversation, "running", False, False, 0, "", "", NOTHING, (), now, None, now, started.event_key
        )
        key, request_hash = question.idempotency_key, question.request_hash
        self.entries[run_id] = Entry(record, caller.user, caller.subscription, started, key, request_hash)
        return started

    async def heartbeat(self, run_id: str, last_seq: int, caller: Caller) -> bool:
        entry = self._running(run_id)
        entry.record = replace(entry.record, last_seq=last_seq, heartbeat_at=datetime.now(UTC))
        return entry.stop_requested

    async def append(self, run_id: str, nodes: Sequence[Node], caller: Caller) -> None:
        self._running(run_id)
        self.nodes += [node for node in nodes if node not in self.nodes]

    async def finish(self, finish: Finish, caller: Caller) -> None:
        entry = self._running(finish.run_id)
        self.nodes += [node for node in finish.nodes if node not in self.nodes]
        self.finished.append(finish)
        entry.record = replace(
            entry.record,
            status=finish.ending.value,
            partial=finish.partial,
            last_seq=finish.last_seq,
            answer_id=finish.message_id,
            answer_node_id=finish.active_node_id,
            details=finish.details,
            usage=finish.usage,
            ended_at=datetime.now(UTC),
        )

    async def get_run(self, run_id: str, caller: Caller) -> RunRecord:
        self.asked += 1
        if self.unreadable:
            raise StoreAway("UNAVAILABLE")
        return self._owned(run_id, caller).record

    async def list_runs(
        self, page_size: int, page_token: str, conversation_id: str, active_only: bool, caller: Caller
    ) -> tuple[list[RunRecord], str]:
        mine = [entry.record for entry in self.entries.values() if entry.owner == caller.user]
        return mine[::-1], ""

    async def request_stop(self, run_id: str, caller: Caller) -> None:
        self._owned(run_id, caller).stop_requested = True

    async def unsettled(self) -> list[Unsettled]:
        if self.unreadable:
            raise StoreAway("UNAVAILABLE")
        for entry in self.entries.values():
            if entry.record.silent:
                ended_at = datetime.now(UTC)
                entry.record = replace(entry.record, status="partial", abandoned=True, ended_at=ended_at)
        return [
            Unsettled(entry.record, entry.owner, entry.subscription)
            for entry in self.entries.values()
            if entry.record.status != "running" and not entry.settled
        ]

    async def settle(self, run_id: str, caller: Caller) -> None:
        if run_id in self.entries:
            self._owned(run_id, caller).settled = True

    async def history(self, conversation_id: str, node_id: str, caller: Caller) -> list[Turn]:
        return self.turns

    def fall_silent(self, run_id: str) -> None:
        """Its heartbeat is stale from now on."""
        self.entries[run_id].record = replace(self.entries[run_id].record, partial=True)

    def age(self, run_id: str, hours: float) -> None:
        """It ended so many hours ago."""
        ended_at = datetime.now(UTC) - timedelta(hours=hours)
        self.entries[run_id].record = replace(self.entries[run_id].record, ended_at=ended_at)

    def delete_conversation_of(self, run_id: str) -> None:
        """The conversation goes, and everything with it."""
        del self.entries[run_id]

    def _owned(self, run_id: str, caller: Caller) -> Entry:
        entry = self.entries.get(run_id)
        if entry is None or entry.owner != caller.user:
            raise RemoteError(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "not found")
        return entry

    def _running(self, run_id: str) -> Entry:
        entry = self.entries.get(run_id)
        if self.closed or entry is None or entry.record.status != "running":
            raise RunClosed("RUN_CLOSED")
        if self.away:
            self.away -= 1
            raise StoreAway("UNAVAILABLE")
        return entry


class Reluctant(MemoryStore):
    """A store that has the run, and doesn't say so yet."""

    def __init__(self) -> None:
        super().__init__()
        self.has_it, self.may_say_so = asyncio.Event(), asyncio.Event()

    async def start_run(self, run_id: str, question: Question, title: str, caller: Caller) -> Started:
        started = await super().start_run(run_id, question, title, caller)
        self.has_it.set()
        await self.may_say_so.wait()
        return started


@dataclass
class ReplayServer:
    """Where replay logs are: run id → who wrote which event."""

    logs: dict[str, list[tuple[object, Numbered]]] = field(default_factory=dict)
    away: bool = False


class MemoryReplay:
    """One process's way to the replay logs of a server."""

    def __init__(self, server: ReplayServer | None = None) -> None:
        self.server = server or ReplayServer()
        self.batches: list[list[int]] = []
        """The numbers of each write that was taken."""

    async def append(self, run_id: str, key: bytes, events: Sequence[Numbered]) -> None:
        if self.server.away:
            raise ReplayAway("away")
        assert key == run_id.encode()[:32]
        log = self.server.logs.setdefault(run_id, [])
        first, last = events[0].seq, events[-1].seq
        if first > len(log) + 1:
            raise ReplayBehind(len(log))
        ended = bool(log) and isinstance(log[-1][1].event, Done)
        if (ended and last > len(log)) or any(writer is not self for writer, _ in log[first - 1 : last]):
            raise ReplayClosed("closed")
        log += [(self, event) for event in events[len(log) + 1 - first :]]
        self.batches.append([event.seq for event in events])

    async def read(self, run_id: str, key: bytes, after: int, limit: int = 500) -> list[Numbered]:
        if self.server.away:
            raise ReplayAway("away")
        return [event for _, event in self.server.logs.get(run_id, [])[after : after + limit]]

    def written(self, run_id: str) -> list[Numbered]:
        """A run's replay log."""
        return [event for _, event in self.server.logs.get(run_id, [])]


class MemoryStops:
    """Tells every process that listens."""

    def __init__(self) -> None:
        self.listeners: list[asyncio.Queue[str]] = []
        self.lost = False
        """Whether what is sent gets lost."""

    async def send(self, run_id: str) -> None:
        if not self.lost:
            for listener in self.listeners:
                listener.put_nowait(run_id)

    async def listen(self) -> AsyncGenerator[str, None]:
        mine: asyncio.Queue[str] = asyncio.Queue()
        self.listeners.append(mine)
        try:
            while True:
                yield await mine.get()
        finally:
            self.listeners.remove(mine)
