"""FAULTS 4: a conversation is deleted while its think runs: the run ends, nothing of it comes back."""

import asyncio
from dataclasses import dataclass

import pytest

from cli.trial.ledger import Call
from tests.e2e.client import HARD, first
from tests.faults.reader import Reader, started
from tests.faults.replicas import with_one_or_slowly_two
from tests.faults.site import Site

ENDS_SECONDS = 30.0
TABLES = ("conversation", "message", "run", "thought_tree", "thought_tree_delta")


@dataclass(frozen=True)
class Deleted:
    """A think whose conversation was deleted during its second step."""

    site: Site
    reader: Reader
    call: Call
    conversation_id: str


@pytest.fixture
async def deleted(site: Site) -> Deleted:
    """One deletion, and the reader that was there; its run has ended."""
    site.trial.set_faults([{"match": {"role": "execute", "nth": 2}, "times": 1, "action": {"delay_ms": 12_000}}])
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=started(3))
    call = await site.call_of("execute", 2)
    conversation_id = str(first(reader.events, "run_started")["conversation_id"])
    gone = await site.gateways[-1].delete(f"/api/conversations/{conversation_id}")
    assert gone.status_code == 204
    return Deleted(site, reader, call, conversation_id)


async def run_over(deleted: Deleted) -> None:
    async with asyncio.timeout(ENDS_SECONDS):
        while deleted.call.ended_at is None or await deleted.site.holds_slot(deleted.reader.run_id):
            await asyncio.sleep(0.1)


@with_one_or_slowly_two
async def test_the_run_ends_its_model_call_is_dropped_and_its_slot_given_back(deleted: Deleted) -> None:
    await run_over(deleted)
    assert deleted.call.aborted, "the model was let to finish for nobody"


@with_one_or_slowly_two
async def test_nothing_of_it_comes_back(deleted: Deleted) -> None:
    await run_over(deleted)
    await asyncio.sleep(1)
    for path in ("", "/messages", "/tree"):
        answer = await deleted.site.gateways[0].get(f"/api/conversations/{deleted.conversation_id}{path}")
        assert answer.status_code == 404
    for table in TABLES:
        column = "id" if table == "conversation" else "conversation_id"
        query = f"SELECT count(*) AS rows FROM treestore.{table} WHERE {column} = $1::text::uuid"
        assert await deleted.site.sql(query, deleted.conversation_id) == [{"rows": 0}], table


@with_one_or_slowly_two
async def test_what_it_used_until_then_is_counted_once(deleted: Deleted) -> None:
    await run_over(deleted)
    usage = await deleted.site.usage_of(deleted.reader.run_id)
    assert usage.partial
    assert usage.tokens > 0


@with_one_or_slowly_two
async def test_a_question_to_it_and_a_second_deletion_are_answered_as_for_one_that_is_gone(deleted: Deleted) -> None:
    path = f"/api/conversations/{deleted.conversation_id}"
    for gateway in deleted.site.gateways:
        assert (await gateway.delete(path)).status_code == 204
        body = {"message": "Et alors ?", "conversation_id": deleted.conversation_id}
        assert (await gateway.post("/api/chat", json=body)).status_code == 404
