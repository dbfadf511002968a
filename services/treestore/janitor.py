"""The janitor: closes runs that nobody has said to be alive for too long. Any number of replicas may have one."""

import asyncio

from kit import telemetry
from services.treestore.errors import StoreAway
from services.treestore.store import Store

PERIOD_SECONDS = 5


async def sweep(store: Store) -> int:
    """Close every run with a stale heartbeat as partial; how many there were. Raises StoreAway."""
    closed = await store.transact(lambda tx: tx.runs.close_stale())
    if closed:
        telemetry.log.info("stale_runs_closed", count=closed)
    return closed


async def keep_sweeping(store: Store, period: float = PERIOD_SECONDS) -> None:
    """Sweep every `period` seconds, until cancelled."""
    while True:
        await asyncio.sleep(period)
        try:
            await sweep(store)
        except StoreAway:
            telemetry.log.warning("sweep_postponed", reason="the database doesn't answer")
