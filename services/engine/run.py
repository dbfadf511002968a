"""One run: its state, and how it ends."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from kit import telemetry
from kit.errors import RemoteError
from services.engine.domain import Ending, Finish
from services.engine.events import Done, EventLog, Trouble
from services.engine.journal import Journal
from services.engine.labels import Labels
from services.engine.ports import RunClosed, Store, StoreAway

SAVE_SECONDS = 12.0
"""How long the end of a run is tried to be stored: less than it takes for its heartbeat to be stale."""
AGAIN_SECONDS = 0.3


@dataclass(eq=False)
class Run:
    """One run of this process."""

    journal: Journal
    stopping: Ending | None = None
    """How it shall end, once it was told to."""
    ending: bool = False
    """It has come to its end, which nothing cuts short."""
    disowned: bool = False
    """Somebody else has closed it, or its conversation was deleted: the ledger takes nothing more of it."""
    ended_at: float = 0.0
    """When it ended, by the loop's clock."""
    answering: asyncio.Task[None] | None = field(default=None, repr=False)
    recording: asyncio.Task[None] | None = field(default=None, repr=False)

    @property
    def run_id(self) -> str:
        """Its id."""
        return self.journal.run_id

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.journal.caller.user

    @property
    def log(self) -> EventLog:
        """Its events."""
        return self.journal.log

    def stop(self, ending: Ending) -> None:
        """End it; what it has said is kept. Telling it twice, or once it is ending, changes nothing."""
        if self.stopping is None and not self.ending:
            self.stopping = ending
            # Behind the task's first step, which waits in the same queue: a task cancelled before it never runs at all.
            asyncio.get_running_loop().call_soon(self._cancel)

    def disown(self) -> None:
        """End it without storing anything more."""
        self.disowned = True
        self.stop(Ending.PARTIAL)

    def _cancel(self) -> None:
        if self.answering is not None and not self.ending:
            self.answering.cancel()


async def finish(run: Run, whole: bool, store: Store, labels: Mapping[str, Labels]) -> Finish:
    """Say what went wrong, store the end of a run, and say `done`.

    `whole` is true when its answer came to its own end. Returns what was to be stored.
    """
    run.ending = True
    journal, texts = run.journal, labels[run.journal.question.locale]
    if not whole and run.stopping is None:
        run.log.emit(Trouble("internal", texts.trouble("internal"), True))
    run.log.flush()
    stored = journal.finish(_ending(run, whole), run.log.last_seq + 1)
    saved = await _save(run, stored, store)
    if not saved:
        journal.partial = True
        run.log.emit(Trouble("not_saved", texts.trouble("not_saved"), True))
    answer = journal.answer
    run.log.emit(
        Done(
            conversation_id=journal.started.conversation_id,
            message_id=stored.message_id,
            node_id=stored.active_node_id,
            model=stored.model,
            tokens_used=journal.bill.input_tokens + journal.bill.output_tokens,
            cost_eur=journal.bill.cost_eur,
            thinking=bool(answer and journal.schema),
            partial=stored.partial or not saved,
            degraded=journal.degraded,
        )
    )
    return stored


def _ending(run: Run, whole: bool) -> Ending:
    answer = run.journal.answer
    if run.stopping is not None and not whole:
        return run.stopping
    if answer is None:
        return Ending.FAILED
    return Ending.PARTIAL if answer.failure or not whole else Ending.DONE


async def _save(run: Run, stored: Finish, store: Store) -> bool:
    """Store the end of a run, trying again while the store is away. False: it could not be stored."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SAVE_SECONDS):
            while not run.disowned:
                try:
                    await store.finish(stored, run.journal.caller)
                    return True
                except StoreAway:
                    await asyncio.sleep(AGAIN_SECONDS)
                except RunClosed:
                    run.disowned = True
                except RemoteError as error:
                    telemetry.log.error("end_refused", run_id=run.run_id, reason=error.reason)
                    break
    return False
