"""The recorder: copies the events of a run from memory into the replay log, behind the run and never in its way."""

import asyncio

from services.engine.events import Content, EventLog
from services.engine.metrics import Metrics
from services.engine.ports import Replay, ReplayAway, ReplayBehind, ReplayClosed

GATHER_SECONDS = 0.05
"""How long events are gathered after content was written: it comes in floods."""
STEP_SECONDS = 0.01
"""How long after anything else: few events, which a process that dies shall not have told to live readers only."""
BATCH_EVENTS = 500
AGAIN_SECONDS = (0.2, 0.4, 0.8, 1.0)
"""Pauses between tries while the replay log is away; the last one again and again."""
KEPT_SECONDS = 300.0
"""How long after its end a run is kept for a replay log that is away."""


async def record(
    run_id: str, key: bytes, log: EventLog, replay: Replay, metrics: Metrics, kept_seconds: float = KEPT_SECONDS
) -> None:
    """Write a run's events as they come, until the last one is written.

    Ends early when another process has closed the replay log, or when it is away for too long after the run's end.
    """
    clock = asyncio.get_running_loop().time
    place = failures = 0
    until: float | None = None
    while True:
        await log.past(place)
        batch = log.since(place, BATCH_EVENTS)
        if not batch:
            return
        try:
            await replay.append(run_id, key, batch)
        except ReplayBehind as behind:
            # What was written before is gone there; it is still here.
            metrics.replay_failures.inc()
            place = behind.last_seq
        except ReplayClosed:
            metrics.replay_failures.inc()
            return
        except ReplayAway:
            metrics.replay_failures.inc()
            if log.closed:
                until = until or clock() + kept_seconds
                if clock() >= until:
                    return
            await asyncio.sleep(AGAIN_SECONDS[min(failures, len(AGAIN_SECONDS) - 1)])
            failures += 1
        else:
            place, failures = batch[-1].seq, 0
            if not log.closed:
                await asyncio.sleep(GATHER_SECONDS if isinstance(batch[-1].event, Content) else STEP_SECONDS)
