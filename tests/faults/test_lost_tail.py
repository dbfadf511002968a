"""FAULTS 1, its worst case: the engine dies before it could write down what its readers had already been told.

The replay log is out of reach for a moment, readers hear some events more, then the engine is killed. Whoever comes
back, with whatever number, is told once that the run was interrupted, and once that it is over.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.faults.conftest import Sites
from tests.faults.reader import Reader, is_type
from tests.faults.replicas import ONE, TWO_SLOWLY
from tests.faults.site import Site

AHEAD = (0, 1, 2, 3, 5)
"""How many events a reader has that are written down nowhere."""
PIECE = "un morceau de la réponse "
PIECES_A_SECOND = 4


@pytest.fixture(scope="module", params=[ONE, TWO_SLOWLY])
async def readers(sites: Sites, request: pytest.FixtureRequest) -> AsyncIterator[dict[int, Reader]]:
    """One reader of a run of its own for each number of events, after an engine's death in the middle of its answer."""
    site: Site = await sites(request.param)
    await site.calm()
    action = {"chunks": [PIECE] * 200, "rate": PIECES_A_SECOND * len(PIECE) / 4}
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": len(AHEAD), "action": action}])
    readers = {ahead: site.reader() for ahead in AHEAD}
    for reader in readers.values():
        await reader.ask("Bonjour", thinking="off", until=is_type("content"))
    with site.redis.stalled():
        # What was under way is written, or is not, but nothing after it.
        await asyncio.sleep(0.2)
        written = {run_id: await site.recorded(run_id) for run_id in (reader.run_id for reader in readers.values())}
        for ahead, reader in readers.items():
            await _hear(reader, written[reader.run_id] + ahead)
        for name in site.processes.replicas("engine"):
            site.processes.kill(name)
        site.redis.reset()
    for reader in readers.values():
        witness = site.reader(reader.run_id)
        await witness.come_back()
        assert witness.events[-1]["type"] == "done"
    yield readers
    await site.calm()


async def _hear(reader: Reader, seq: int) -> None:
    """Read from memory up to this number, or forget what was read beyond it."""
    if reader.seq < seq:
        await reader.come_back(until=lambda event: event["seq"] >= seq)
    del reader.events[seq:]


@pytest.mark.parametrize("ahead", AHEAD)
async def test_a_reader_that_knows_more_than_was_written_down_is_told_the_end_once(
    readers: dict[int, Reader], ahead: int
) -> None:
    reader = readers[ahead]
    await asyncio.wait_for(reader.come_back(), 40)
    kinds = [event["type"] for event in reader.events]
    assert (kinds.count("error"), kinds.count("done")) == (1, 1)
    assert kinds[-2:] == ["error", "done"]
    again = await reader.gateways[0].get(
        f"/api/runs/{reader.run_id}/events", headers={"Last-Event-ID": str(reader.seq)}
    )
    assert (again.status_code, again.content) == (204, b""), "it is told again and again"
