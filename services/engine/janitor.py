"""The janitor: closes runs whose process fell silent and enters in the books what isn't in them yet.

Every process has one; what two of them do at once has one effect.
"""

import asyncio

from kit import telemetry
from kit.errors import RemoteError
from services.engine.books import caller_of, enter, usage_from
from services.engine.metrics import Metrics
from services.engine.ports import Quota, QuotaAway, Store, StoreAway

PERIOD_SECONDS = 5.0
MANY = 50
"""When a sweep settles so many, there are more."""
FAILURES = 3
"""After so many runs that quota doesn't take, it is taken to be away, and the rest waits for the next sweep."""


async def sweep(store: Store, quota: Quota, metrics: Metrics) -> int:
    """Close, enter and settle what there is; how many runs were settled. Raises StoreAway."""
    found = await store.unsettled()
    metrics.unsettled.set(len(found))
    settled = failures = 0
    for unsettled in found:
        run, caller = unsettled.run, caller_of(unsettled)
        if run.abandoned:
            await quota.release(run.run_id, caller)
        try:
            await enter(usage_from(run), caller, quota, store)
        except QuotaAway:
            failures += 1
            if failures == FAILURES:
                break
            continue
        settled += 1
        if run.abandoned:
            telemetry.log.info("abandoned_run_closed", run_id=run.run_id)
    return settled


async def keep_sweeping(store: Store, quota: Quota, metrics: Metrics, period: float = PERIOD_SECONDS) -> None:
    """Sweep every `period` seconds, until cancelled."""
    while True:
        await asyncio.sleep(period)
        try:
            while await sweep(store, quota, metrics) >= MANY:
                pass
        except StoreAway:
            telemetry.log.warning("sweep_postponed", reason="the store doesn't answer")
        except RemoteError as error:
            telemetry.log.error("sweep_refused", reason=error.reason)
