"""The way of a run's usage into the books when its conversation was deleted."""

import asyncio

import asyncpg

from tests.integration.treestore.client import Client
from tests.integration.treestore.settling import DETAILS, STORED, USAGE, nothing_unsettled, think

__all__ = ["nothing_unsettled"]


async def test_what_an_ended_run_used_survives_the_deletion_of_its_conversation(alice: Client) -> None:
    started = await alice.start(subscription="pro")
    run_id = started.run.run_id
    await alice.finish(run_id, usage=USAGE, details=DETAILS)
    before = await alice.unsettled()
    await alice.delete(started.conversation.conversation_id)
    after = await alice.unsettled()
    await alice.settle(run_id)
    assert (after, await alice.unsettled()) == (before, [])


async def test_what_a_settled_run_used_is_not_charged_again_by_a_deletion(alice: Client) -> None:
    started = await alice.start()
    await alice.finish(started.run.run_id, usage=USAGE)
    await alice.settle(started.run.run_id)
    await alice.delete(started.conversation.conversation_id)
    assert await alice.unsettled() == []


async def test_a_run_that_went_on_when_its_conversation_was_deleted_used_what_its_nodes_said(
    alice: Client, sql: asyncpg.Connection
) -> None:
    started = await think(alice, subscription="pro")
    await alice.delete(started.conversation.conversation_id)
    await sql.execute("UPDATE treestore.unsettled_run SET heartbeat_at = now() - interval '16 s'")
    (waiting,) = await alice.unsettled()
    assert (waiting.run.run_id, waiting.run.abandoned, waiting.run.partial) == (started.run.run_id, True, True)
    assert (list(waiting.run.usage), waiting.run.details.node_count, waiting.subscription) == (STORED, 4, "pro")


async def test_an_engine_may_settle_the_run_of_a_deleted_conversation_before_others_see_it(
    alice: Client, sql: asyncpg.Connection
) -> None:
    started = await think(alice)
    await alice.delete(started.conversation.conversation_id)
    seen = await alice.unsettled()
    await alice.settle(started.run.run_id)
    await sql.execute("UPDATE treestore.unsettled_run SET heartbeat_at = now() - interval '16 s'")
    assert (seen, await alice.unsettled()) == ([], [])


async def test_a_conversation_whose_tree_does_not_open_can_be_deleted_while_it_runs(
    alice: Client, sql: asyncpg.Connection
) -> None:
    started = await think(alice)
    conversation_id = started.conversation.conversation_id
    await sql.execute("UPDATE treestore.conversation SET title = 'x' WHERE id = $1", conversation_id)
    await alice.delete(conversation_id)
    assert await sql.fetchval("SELECT run_id FROM treestore.unsettled_run") is not None


async def test_deleting_while_a_run_ends_leaves_one_end(alice: Client, sql: asyncpg.Connection) -> None:
    for _ in range(10):
        started = await think(alice)
        await asyncio.gather(
            alice.finish(started.run.run_id, usage=USAGE),
            alice.delete(started.conversation.conversation_id),
            return_exceptions=True,
        )
        await alice.delete(started.conversation.conversation_id)
        rows = await sql.fetch("SELECT abandoned, usage FROM treestore.unsettled_run")
        assert len(rows) == 1
        await sql.execute("DELETE FROM treestore.unsettled_run")
