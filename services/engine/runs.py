"""Runs: each a task of this process, detached from the call that asked for it."""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass

import structlog

from kit import telemetry
from kit.deadline import deadline
from kit.errors import RemoteError, ShuttingDown
from kit.identity import Caller, for_run
from kit.ids import new_id
from kit.text import first_sentence
from services.engine.books import enter, usage_of
from services.engine.domain import Ending, Finish, Question, Thinking
from services.engine.events import EventLog, RunStarted
from services.engine.journal import Journal
from services.engine.labels import Labels
from services.engine.metrics import Metrics
from services.engine.pipeline import Pipeline
from services.engine.ports import QuotaAway, Replay, RunClosed, Stops, StoreAway
from services.engine.recorder import record
from services.engine.run import Run, finish
from services.engine.subscriptions import ForcedThinkingForbidden, subscription_of

HEARTBEAT_SECONDS = 5.0
KEPT_RUNS = 200
"""How many runs that ended are kept while the replay log is away, but for those of the last seconds."""
LATE_SECONDS = 5.0
CUT_SECONDS = 3.0
"""How long a stopping process gives runs that it has cut to be stored, written to the replay log and entered."""
ENTER_TRIES, ENTER_SECONDS = 10, 1.0
"""How often, and how many seconds apart, a run that no janitor will find is tried to be entered in the books."""


@dataclass(frozen=True)
class Earlier:
    """The run that a request with this idempotency key has started before, here or elsewhere."""

    run_id: str


class Runs:
    """The runs of this process: those that go on, and those whose end isn't in the replay log yet."""

    def __init__(
        self, pipeline: Pipeline, replay: Replay, stops: Stops, labels: Mapping[str, Labels], metrics: Metrics
    ) -> None:
        self._pipeline = pipeline
        self._store = pipeline.store
        self._quota = pipeline.quota
        self._replay = replay
        self._stops = stops
        self._labels = labels
        self._metrics = metrics
        self._runs: dict[str, Run] = {}
        self._ended: dict[str, Run] = {}
        """Those of them that have ended, the one that ended first in front."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[str, asyncio.Task[Run | Earlier]] = {}
        self._draining = False
        self._cutting = False
        self._moved = asyncio.Event()
        """Something has come nearer to its end."""

    async def start(self, question: Question, caller: Caller, lasting: bool) -> Run | Earlier:
        """Store the question and begin to answer it.

        `lasting` says what becomes of it when the caller goes away before this returns: true, it goes on.
        Raises ShuttingDown, ModeUnknown, ForcedThinkingForbidden, and RemoteError where the store refuses.
        """
        if self._draining:
            raise ShuttingDown("shutting down")
        if question.thinking is Thinking.ON and not subscription_of(caller.subscription).may_force:
            raise ForcedThinkingForbidden("this subscription can't ask for a think")
        if question.mode:
            self._pipeline.catalog.get(question.mode)
        run_id = new_id()
        starting = asyncio.create_task(self._start(run_id, question, for_run(caller, run_id)))
        self._starting[run_id] = starting
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            # What the store may have begun must be begun here too, or its conversation would wait for nobody.
            starting.add_done_callback(functools.partial(_unwaited, lasting))
            raise

    def find(self, run_id: str, owner: str) -> Run | None:
        """A run of this user's that this process holds."""
        run = self._runs.get(run_id)
        return run if run is not None and run.owner == owner else None

    def last_seq(self, run_id: str) -> int:
        """The number of a run's last event, as far as this process knows; 0: it doesn't hold it."""
        run = self._runs.get(run_id)
        return 0 if run is None else run.log.last_seq

    def forget(self, run_id: str) -> None:
        """Hold a run's events no more. Who reads them now reads on, and what its recorder has to write is written."""
        self._ended.pop(run_id, None)
        self._runs.pop(run_id, None)
        self._metrics.kept.set(len(self._runs))

    async def stop(self, run_id: str, caller: Caller) -> None:
        """End a run of this user's, whichever process has it; one that has ended stays as it is.

        Raises RemoteError when there is none.
        """
        run = self.find(run_id, caller.user)
        if run is not None:
            run.stop(Ending.STOPPED)
            return
        await self._store.request_stop(run_id, caller)
        await self._stops.send(run_id)

    async def obey(self) -> None:
        """End the runs of this process that another one was told to stop; goes on until it is cancelled."""
        async with contextlib.aclosing(self._stops.listen()) as told:
            async for run_id in told:
                if (run := self._runs.get(run_id)) is not None:
                    run.stop(Ending.STOPPED)

    async def drain(self, seconds: float) -> None:
        """Take no more questions; give running ones `seconds`, then end them with what there is."""
        self._draining = True
        await self._until(lambda: not self._starting and all(run.log.closed for run in self._runs.values()), seconds)
        self._cutting = True
        for run in self._runs.values():
            run.stop(Ending.PARTIAL)
        await self._until(lambda: not self._starting and not self._tasks, CUT_SECONDS)

    async def _until(self, idle: Callable[[], bool], seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not idle():
                    self._moved.clear()
                    await self._moved.wait()

    async def _start(self, run_id: str, question: Question, acting: Caller) -> Run | Earlier:
        title = first_sentence(question.message, 80) or question.message.strip()[:80]
        try:
            started = await self._store.start_run(run_id, question, title, acting)
            if started.run_id == run_id:
                return self._begin(Journal(question, started, acting, self._store, EventLog()))
        finally:
            del self._starting[run_id]
            self._moved.set()
        if (twin := self._starting.get(started.run_id)) is not None:
            # The reply to it is on its way to this process too.
            await asyncio.wait([twin])
        return Earlier(started.run_id)

    def _begin(self, journal: Journal) -> Run:
        run, started = Run(journal), journal.started
        run.log.emit(RunStarted(started.conversation_id, started.message_id, started.parent_node_id))
        self._runs[run.run_id] = run
        self._metrics.started.inc()
        self._metrics.running.inc()
        self._metrics.kept.set(len(self._runs))
        recorded = record(run.run_id, started.event_key, run.log, self._replay, self._metrics)
        run.recording = self._spawn(recorded, f"recorder {run.run_id}")
        run.recording.add_done_callback(lambda _: self._forget_ended(run))
        run.answering = self._spawn(self._answer(run), f"run {run.run_id}")
        if self._cutting:
            run.stop(Ending.PARTIAL)
        return run

    def _spawn(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._moved.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.fault("run_failed", error, task=task.get_name())

    async def _answer(self, run: Run) -> None:
        structlog.contextvars.bind_contextvars(run_id=run.run_id)
        # The run's time is its own, not that of the call that asked for it.
        deadline.set(None)
        heart = asyncio.create_task(self._beat(run))
        whole = False
        try:
            await self._pipeline.answer(run.journal)
            whole = True
        except RunClosed:
            run.disown()
        finally:
            try:
                stored = await finish(run, whole, self._store, self._labels)
            finally:
                heart.cancel()
                self._metrics.running.dec()
            self._metrics.ended.labels(stored.ending.value).inc()
            self._keep(run)
            await self._enter(run, stored)

    async def _beat(self, run: Run) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                if await self._store.heartbeat(run.run_id, run.log.last_seq, run.journal.caller):
                    run.stop(Ending.STOPPED)
            except StoreAway:
                continue
            except RemoteError as error:
                telemetry.log.error("heartbeat_refused", reason=error.reason)
            except RunClosed:
                run.disown()
                return

    def _keep(self, run: Run) -> None:
        """Hold a run that has ended until its end is in the replay log, within bounds."""
        self._moved.set()
        if run.disowned or run.recording is None or run.recording.done():
            # The ledger and the replay log say what there is to say of it; what was deleted isn't here either.
            self.forget(run.run_id)
            return
        now = run.ended_at = asyncio.get_running_loop().time()
        self._ended[run.run_id] = run
        while len(self._ended) > KEPT_RUNS:
            oldest = next(iter(self._ended.values()))
            if now - oldest.ended_at < LATE_SECONDS:
                break
            if oldest.recording is not None:
                oldest.recording.cancel()
            self.forget(oldest.run_id)

    def _forget_ended(self, run: Run) -> None:
        if run.run_id in self._ended:
            self.forget(run.run_id)

    async def _enter(self, run: Run, stored: Finish) -> None:
        """Enter a run in the books. When quota is away, the janitor does it of whatever the ledger has."""
        usage = usage_of(stored, run.journal)
        for left in reversed(range(ENTER_TRIES if run.disowned else 1)):
            try:
                await enter(usage, run.journal.caller, self._quota, self._store)
                return
            except QuotaAway:
                if left:
                    await asyncio.sleep(ENTER_SECONDS)
            except StoreAway:
                return


def _unwaited(lasting: bool, starting: asyncio.Task[Run | Earlier]) -> None:
    """A run has begun, or was refused, after its caller had gone away."""
    if starting.cancelled() or starting.exception() is not None:
        return
    run = starting.result()
    if isinstance(run, Run) and not lasting:
        run.stop(Ending.STOPPED)
