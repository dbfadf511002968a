"""Runs: each a task of this process, detached from the call that asked for it."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from kit import telemetry
from kit.errors import ShuttingDown
from kit.identity import Caller, for_run
from kit.ids import new_id
from kit.text import first_sentence
from services.engine.domain import Ending, Question, Thinking
from services.engine.events import Done, EventLog, RunStarted, Trouble
from services.engine.journal import Journal
from services.engine.labels import Labels
from services.engine.pipeline import Pipeline
from services.engine.ports import RunClosed, Store, StoreAway
from services.engine.subscriptions import ForcedThinkingForbidden, subscription_of

HEARTBEAT_SECONDS = 5.0
KEPT_SECONDS = 300.0
"""How long the events of a run that ended can still be read here."""
SAVE_SECONDS = 12.0
"""How long the end of a run is tried to be stored: less than it takes for its heartbeat to be stale."""


class RunUnknown(Exception):
    """This process has no such run of this user."""


@dataclass(eq=False)
class Run:
    """One run of this process."""

    run_id: str
    owner: str
    journal: Journal
    log: EventLog
    stopping: Ending | None = None
    """How it shall end, once it was told to."""
    task: asyncio.Task[None] | None = field(default=None, repr=False)

    def stop(self, ending: Ending) -> None:
        """End it; what it has said is kept. Telling it twice, or once it has ended, changes nothing."""
        if self.stopping is None and not self.log.closed and self.task is not None:
            self.stopping = ending
            # Behind the task's first step, which waits in the same queue: a task cancelled before it never runs at all.
            asyncio.get_running_loop().call_soon(self.task.cancel)


class Runs:
    """The runs of this process."""

    def __init__(self, pipeline: Pipeline, store: Store, labels: Mapping[str, Labels]) -> None:
        self._pipeline = pipeline
        self._store = store
        self._labels = labels
        self._runs: dict[str, Run] = {}
        self._draining = False

    async def start(self, question: Question, caller: Caller) -> Run:
        """Store the question and begin to answer it.

        Raises ShuttingDown, ModeUnknown, ForcedThinkingForbidden, and RemoteError where the store refuses.
        """
        if self._draining:
            raise ShuttingDown("shutting down")
        if question.thinking is Thinking.ON and not subscription_of(caller.subscription).may_force:
            raise ForcedThinkingForbidden("this subscription can't ask for a think")
        if question.mode:
            self._pipeline.catalog.get(question.mode)
        run_id = new_id()
        acting = for_run(caller, run_id)
        title = first_sentence(question.message, 80) or question.message.strip()[:80]
        started = await self._store.start_run(run_id, question, title, acting)
        log = EventLog()
        journal = Journal(question, started, acting, self._store, log)
        run = Run(run_id, caller.user, journal, log)
        log.emit(RunStarted(started.conversation_id, started.message_id, started.parent_node_id))
        self._runs[run_id] = run
        run.task = asyncio.create_task(self._answer(run), name=f"run {run_id}")
        run.task.add_done_callback(lambda task: self._ended(run, task))
        return run

    def find(self, run_id: str, owner: str) -> Run:
        """A run of this process, while it goes on and a while after. Raises RunUnknown."""
        run = self._runs.get(run_id)
        if run is None or run.owner != owner:
            raise RunUnknown("there is no such run")
        return run

    async def stop(self, run_id: str, caller: Caller) -> None:
        """End a run; one that has ended, here or elsewhere, stays as it is. Raises RemoteError when there is none."""
        run = self._runs.get(run_id)
        if run is not None and run.owner == caller.user:
            run.stop(Ending.STOPPED)
        else:
            await self._store.check_run(run_id, caller)

    async def drain(self, seconds: float) -> None:
        """Take no more questions; give running ones `seconds`, then end them with what there is."""
        self._draining = True
        tasks = {run.task for run in self._runs.values() if run.task is not None and not run.task.done()}
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=seconds)
        for run in self._runs.values():
            run.stop(Ending.PARTIAL)
        await asyncio.wait(tasks, timeout=SAVE_SECONDS)

    async def _answer(self, run: Run) -> None:
        structlog.contextvars.bind_contextvars(run_id=run.run_id)
        heart = asyncio.create_task(self._beat(run))
        whole = False
        try:
            await self._pipeline.answer(run.journal)
            whole = True
        except RunClosed:
            run.stopping = Ending.PARTIAL
        finally:
            heart.cancel()
            await self._finish(run, whole)

    async def _beat(self, run: Run) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self._store.heartbeat(run.run_id, run.journal.caller)
            except StoreAway:
                continue
            except RunClosed:
                run.stop(Ending.PARTIAL)
                return

    async def _finish(self, run: Run, whole: bool) -> None:
        journal = run.journal
        labels = self._labels[journal.question.locale]
        if not whole and run.stopping is None:
            run.log.emit(Trouble("internal", labels.trouble("internal"), True))
        ending = self._ending(run, whole)
        if not await self._save(run, ending):
            run.log.emit(Trouble("not_saved", labels.trouble("not_saved"), True))
            journal.partial = True
        answer = journal.answer
        run.log.emit(
            Done(
                conversation_id=journal.started.conversation_id,
                message_id=journal.answer_id if answer else "",
                node_id=answer.id if answer else "",
                model=answer.model if answer else "",
                tokens_used=journal.bill.input_tokens + journal.bill.output_tokens,
                cost_eur=journal.bill.cost_eur,
                thinking=bool(answer and journal.schema),
                partial=journal.partial or ending is not Ending.DONE,
                degraded=journal.degraded,
            )
        )

    def _ending(self, run: Run, whole: bool) -> Ending:
        answer = run.journal.answer
        if run.stopping is not None and not whole:
            return run.stopping
        if answer is None:
            return Ending.FAILED
        return Ending.PARTIAL if answer.failure or not whole else Ending.DONE

    async def _save(self, run: Run, ending: Ending) -> bool:
        """Store the end of a run, trying again while the store is away. False: it could not be stored."""
        finish = run.journal.finish(ending)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SAVE_SECONDS):
                while True:
                    try:
                        await self._store.finish(finish, run.journal.caller)
                        return True
                    except StoreAway:
                        await asyncio.sleep(0.3)
                    except RunClosed:
                        return False
        return False

    def _ended(self, run: Run, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            telemetry.fault("run_failed", error, run_id=run.run_id)
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self._runs.pop, run.run_id, None)
