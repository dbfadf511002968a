"""Watching a run: from the memory of the process that runs it, from the replay log everywhere else."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import grpc

from kit.errors import RemoteError
from kit.identity import Caller
from services.engine.domain import RunRecord
from services.engine.events import Content, Done, Numbered, Trouble
from services.engine.labels import Labels
from services.engine.ports import Replay, ReplayAway, ReplayBehind, ReplayClosed, Store, StoreAway
from services.engine.runs import Runs

POLL_SECONDS, SLOWEST_SECONDS = 0.05, 0.25
"""How often the replay log is read: at first, and after a while in which nothing came."""
ASK_SECONDS = 2.0
"""How often the ledger is asked while nothing comes."""
AHEAD_SECONDS = 6.0
"""How long an event that isn't there yet is waited for: longer than from one heartbeat to the next."""
AWAY_SECONDS = 10.0
"""How long a replay log that is away is waited for."""
LAST_SECONDS = 3.0
"""How long the last events of a run that has ended are waited for: its process may be trying to write them."""
UNWRITTEN_EVENTS = 8
"""More events than a process says before it writes them to the replay log, while that is there."""
KEPT = timedelta(hours=1)
"""How long after its end the events of a run can be read."""


class SequenceAhead(Exception):
    """The run has no event of this number."""


class EventsExpired(Exception):
    """The run ended too long ago for its events to be kept."""


class Watch:
    """Follows runs, whichever process runs them."""

    def __init__(self, runs: Runs, store: Store, replay: Replay, labels: Labels) -> None:
        """`labels` say what is said in the name of a process that died."""
        self._runs = runs
        self._store = store
        self._replay = replay
        self._labels = labels

    async def events(self, run_id: str, after: int, caller: Caller) -> AsyncGenerator[Numbered, None]:
        """A user's run after event number `after`, events to come included, until its last one.

        Raises SequenceAhead, EventsExpired, StoreAway, ReplayAway, and RemoteError when this user has no such run.
        """
        run = self._runs.find(run_id, caller.user)
        if run is not None and (not run.log.closed or await self._is_there_still(run_id, caller)):
            if after > run.log.last_seq:
                raise SequenceAhead("the run has no event of this number yet")
            source = run.log.follow(after)
        else:
            record = await self._store.get_run(run_id, caller)
            source = _Elsewhere(self._store, self._replay, self._labels, caller, record, after).follow()
        async with aclosing(source) as events:
            async for event in events:
                yield event

    async def _is_there_still(self, run_id: str, caller: Caller) -> bool:
        """Whether a run that ended here is in the ledger: its conversation may have been deleted since."""
        try:
            await self._store.get_run(run_id, caller)
        except StoreAway:
            return True
        except RemoteError as error:
            if error.code is grpc.StatusCode.NOT_FOUND:
                self._runs.forget(run_id)
            raise
        return True


class _Elsewhere:
    """One reader of one run that this process doesn't hold."""

    def __init__(
        self, store: Store, replay: Replay, labels: Labels, caller: Caller, record: RunRecord, after: int
    ) -> None:
        self._store = store
        self._replay = replay
        self._labels = labels
        self._caller = caller
        self._record = record
        self._place = after
        """The number of the last event the reader has."""
        self._known = after == 0
        """An event of that number is known to exist."""
        self._clock = asyncio.get_running_loop().time
        self._began = self._asked_at = self._clock()
        self._first_beat = record.heartbeat_at
        self._quiet_since: float | None = None
        """Since when nothing has come of a run that has ended."""

    async def follow(self) -> AsyncGenerator[Numbered, None]:
        """What the replay log holds, as it comes; where it ends too early, the end that the ledger knows of."""
        pause = POLL_SECONDS
        while not self._has_all():
            events = await self._read(self._place)
            for event in events:
                self._place, self._known = event.seq, True
                yield event
            if events:
                pause, self._quiet_since = POLL_SECONDS, None
                if isinstance(events[-1].event, Done):
                    return
            elif (end := await self._end()) is not None:
                for event in end:
                    yield event
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, SLOWEST_SECONDS)

    def _has_all(self) -> bool:
        """Whether the reader has the last event. Raises SequenceAhead when it says to have more than there are."""
        record = self._record
        if record.status == "running" or record.abandoned or record.last_seq == 0:
            return False
        if self._place > record.last_seq:
            raise SequenceAhead("the run has no event of this number")
        return self._place == record.last_seq

    async def _read(self, after: int, limit: int = 500) -> list[Numbered]:
        """The replay log's next events; one that is away is waited for. Raises ReplayAway."""
        since = self._clock()
        while True:
            try:
                return await self._replay.read(self._record.run_id, self._record.event_key, after, limit)
            except ReplayAway:
                if self._clock() - since >= AWAY_SECONDS:
                    raise
                await asyncio.sleep(SLOWEST_SECONDS)

    async def _end(self) -> list[Numbered] | None:
        """What is left to say when nothing came; None: wait on."""
        if self._record.status == "running":
            if self._record.silent or self._clock() - self._asked_at >= ASK_SECONDS:
                await self._ask()
            await self._check_ahead()
            return None
        last = await self._read(self._place - 1, 1) if self._place else []
        if last and isinstance(last[0].event, Done):
            return []
        if self._record.abandoned:
            return await self._close()
        if self._quiet_since is None:
            self._quiet_since = self._clock()
        if self._clock() - self._quiet_since < LAST_SECONDS:
            return None
        ended_at = self._record.ended_at
        if ended_at is not None and datetime.now(UTC) - ended_at > KEPT and not await self._read(0, 1):
            raise EventsExpired("the run's events are kept no more")
        return self._last_words(self._place)

    async def _ask(self) -> None:
        """Ask the ledger how the run is. While it is away, what it said last stands."""
        self._asked_at = self._clock()
        if self._record.silent:
            # The ledger closes such runs when it is asked for them: only then is their end the same for everybody.
            with contextlib.suppress(StoreAway, RemoteError):
                await self._store.unsettled()
        try:
            self._record = await self._store.get_run(self._record.run_id, self._caller)
        except StoreAway:
            return

    async def _check_ahead(self) -> None:
        """Raise SequenceAhead when it is sure that the run, which goes on, hasn't come as far as its reader says."""
        record = self._record
        if self._known or record.last_seq >= self._place:
            self._known = True
            return
        # Only a process that has beaten since can be believed: one that died may have said more than it could write.
        beaten = record.heartbeat_at is not None and record.heartbeat_at != self._first_beat
        if beaten and self._clock() - self._began >= AHEAD_SECONDS:
            self._known = bool(await self._read(self._place - 1, 1))
            if not self._known:
                raise SequenceAhead("the run has no event of this number yet")

    async def _close(self) -> list[Numbered]:
        """The end of a run whose process died, in the replay log too, so that every reader gets the same one."""
        place = self._place
        while True:
            try:
                await self._replay.append(self._record.run_id, self._record.event_key, self._closing(place))
            except ReplayBehind as behind:
                # This reader was told more than was written down.
                place = behind.last_seq
                continue
            except (ReplayClosed, ReplayAway):
                # Another reader was faster, or there is no log.
                pass
            # Nothing left: this reader is ahead of the end, too. It is told the end by a number of its own.
            return await self._read_if_there() or self._last_words(self._place)

    def _closing(self, place: int) -> list[Numbered]:
        """The end after event number `place`, behind as many empty pieces as the process may have said and not written.

        Whoever heard those gets the end from where they are, once, and without a gap.
        """
        now = datetime.now(UTC)
        empty = [Numbered(place + number, now, Content("")) for number in range(1, UNWRITTEN_EVENTS + 1)]
        return [*empty, *self._last_words(place + UNWRITTEN_EVENTS)]

    async def _read_if_there(self) -> list[Numbered]:
        try:
            return await self._replay.read(self._record.run_id, self._record.event_key, self._place)
        except ReplayAway:
            return []

    def _last_words(self, place: int) -> list[Numbered]:
        record, now = self._record, datetime.now(UTC)
        lost = record.status in ("done", "stopped")
        code = "events_lost" if lost else "interrupted"
        trouble = Trouble(code, self._labels.trouble(code), not lost)
        done = Done(
            conversation_id=record.conversation_id,
            message_id=record.answer_id,
            node_id=record.answer_node_id,
            model=record.usage[0].model if record.answer_id and len(record.usage) == 1 else "",
            tokens_used=sum(line.input_tokens + line.output_tokens for line in record.usage),
            cost_eur=record.details.cost_eur,
            thinking=bool(record.answer_id and record.details.schema),
            partial=record.partial,
            degraded=record.details.degraded,
        )
        return [Numbered(place + 1, now, trouble), Numbered(place + 2, now, done)]
