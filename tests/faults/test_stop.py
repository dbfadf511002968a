"""FAULTS 16: a stop closes the model's socket within a second, frees the slot, and counts what was used."""

import asyncio
import time

import pytest

from tests.e2e.client import HARD, first
from tests.faults.reader import is_type
from tests.faults.replicas import with_one_and_two, with_two
from tests.faults.site import Site

SOCKET_SECONDS = 1.0
SLOT_SECONDS = 3.0


@pytest.mark.parametrize("role", ["decompose", "synthesize", "conversation"])
@with_one_and_two
async def test_a_stop_closes_the_socket_frees_the_slot_and_counts(site: Site, role: str) -> None:
    site.trial.set_faults([{"match": {"role": role}, "times": 1, "action": {"hang": "middle"}}])
    reader = site.reader()
    thinks = role != "conversation"
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche", thinking="on" if thinks else "off"))
    call = await site.call_of(role)
    await reader.heard(is_type("run_started"))
    # Into the middle of its answer.
    await asyncio.sleep(0.3)
    assert await site.holds_slot(reader.run_id) == thinks
    asked = time.monotonic()
    stopped = await site.gateways[-1].delete(f"/api/runs/{reader.run_id}")
    await asking
    async with asyncio.timeout(SLOT_SECONDS):
        while await site.holds_slot(reader.run_id):
            await asyncio.sleep(0.05)
    assert stopped.status_code == 204
    assert call.aborted_at is not None
    assert call.aborted_at - asked < SOCKET_SECONDS
    done = first(reader.events, "done")
    assert done["partial"] is True
    usage = await site.usage_of(reader.run_id)
    assert usage.tokens == done["tokens_used"] > 0
    messages = (await site.user.get(f"/api/conversations/{done['conversation_id']}/messages"))["items"]
    assert [message["content"] for message in messages[1:]] == ([reader.answer] if reader.answer else [])


@with_two
async def test_it_does_so_whichever_engine_is_asked(site: Site) -> None:
    """Calls go to the engines in turn: of six stops some come to the engine that has the run, some to the other."""
    for _ in range(6):
        site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": {"hang": "middle"}}])
        reader = site.reader()
        asking = asyncio.create_task(reader.ask("Bonjour", thinking="off"))
        call = await site.call_of("conversation")
        await reader.heard(is_type("run_started"))
        asked = time.monotonic()
        assert (await site.gateways[1].delete(f"/api/runs/{reader.run_id}")).status_code == 204
        await asking
        assert call.aborted_at is not None
        assert call.aborted_at - asked < SOCKET_SECONDS
        assert first(reader.events, "done")["partial"] is True
        site.trial.reset()


@with_one_and_two
async def test_a_stop_of_a_run_that_has_ended_changes_nothing(site: Site) -> None:
    reader = site.reader()
    await reader.ask("Bonjour")
    path = f"/api/runs/{reader.run_id}"
    for gateway in site.gateways:
        assert (await gateway.delete(path)).status_code == 204
    (run,) = (await site.user.get("/api/runs", conversation_id=reader.events[0]["conversation_id"]))["items"]
    assert run["status"] == "done"
