"""The books: what a run used is entered once, and the ledger is told that it is."""

from kit.identity import Caller
from services.engine.domain import Ending, Finish, RunRecord, Unsettled
from services.engine.journal import Journal
from services.engine.ports import Quota, RunUsage, Store


def usage_of(finish: Finish, journal: Journal) -> RunUsage:
    """A run that has just ended, for the books."""
    partial = finish.partial or journal.partial
    return RunUsage(finish.run_id, finish.ending, finish.usage, finish.details, partial, journal.began_at)


def usage_from(run: RunRecord) -> RunUsage:
    """A run of the ledger that has ended, for the books."""
    return RunUsage(run.run_id, Ending(run.status), run.usage, run.details, run.partial, run.started_at)


def caller_of(unsettled: Unsettled) -> Caller:
    """For whom a run is entered by a process that didn't run it: its owner, within the run."""
    return Caller(unsettled.owner, unsettled.subscription, run_id=unsettled.run.run_id)


async def enter(usage: RunUsage, caller: Caller, quota: Quota, store: Store) -> None:
    """Enter a run and settle it. Repeating it changes nothing. Raises QuotaAway, StoreAway."""
    await quota.record(usage, caller)
    await store.settle(usage.run_id, caller)
