"""The way of a run's usage into the books: once, whatever becomes of its engine."""

import asyncio
import uuid

import asyncpg
import pytest
from lintello.common.v1 import run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from services.treestore.records import Details
from services.treestore.store import Store, Transaction
from tests.integration.treestore.client import Client, grow_stale, new_id, refused
from tests.integration.treestore.settling import DETAILS, STORED, USAGE, nothing_unsettled, step, think

__all__ = ["nothing_unsettled"]


async def test_a_run_that_ended_is_unsettled_until_it_is_settled(alice: Client) -> None:
    run_id = (await alice.start(subscription="pro")).run.run_id
    running = await alice.unsettled()
    ended = await alice.finish(run_id, usage=USAGE, details=DETAILS, last_seq=9)
    (waiting,) = await alice.unsettled()
    await alice.settle(run_id)
    assert (running, await alice.unsettled()) == ([], [])
    assert (waiting.owner, waiting.subscription) == (alice.caller.user, "pro")
    for name in ("run_id", "conversation_id", "status", "partial", "abandoned", "last_seq", "usage", "heartbeat_at",
                 "created_at", "ended_at"):  # fmt: skip
        assert getattr(waiting.run, name) == getattr(ended, name), name
    assert waiting.run.details == pb.RunDetails(
        schema="chain", mode="recherche", duration_ms=1234, cost_eur=0.002, node_count=7, fallbacks=1, retries=3
    )


async def test_settling_is_noted_on_the_run(alice: Client, sql: asyncpg.Connection) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.finish(run_id)
    query = "SELECT usage_recorded_at FROM treestore.run WHERE id = $1"
    before = await sql.fetchval(query, run_id)
    await alice.settle(run_id)
    first = await sql.fetchval(query, run_id)
    await alice.settle(run_id)
    assert (before, first is not None, await sql.fetchval(query, run_id)) == (None, True, first)


async def test_a_run_that_goes_on_can_not_be_settled(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    assert await refused(alice.settle(run_id)) == "RUN_IN_PROGRESS"
    await alice.finish(run_id)
    assert [each.run.run_id for each in await alice.unsettled()] == [run_id]


async def test_another_user_can_not_settle_a_run(alice: Client, bob: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.finish(run_id)
    assert await refused(bob.settle(run_id)) == "NOT_FOUND"
    assert len(await alice.unsettled()) == 1


async def test_a_repeated_finish_is_unsettled_once_and_not_again_once_settled(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    for _ in range(2):
        await alice.finish(run_id)
    unsettled = len(await alice.unsettled())
    await alice.settle(run_id)
    await alice.finish(run_id)
    assert (unsettled, await alice.unsettled()) == (1, [])


async def test_the_run_that_ended_first_comes_first_and_the_others_after_it_is_settled(
    alice: Client, bob: Client
) -> None:
    started = [(client, (await client.start()).run.run_id) for client in (alice, bob, alice)]
    for client, run_id in reversed(started):
        await client.finish(run_id)
    seen = []
    for _ in started:
        (first,) = await alice.unsettled(page_size=1)
        seen.append(first.run.run_id)
        await (alice if first.owner == alice.caller.user else bob).settle(first.run.run_id)
    assert seen == [run_id for _, run_id in reversed(started)]


async def test_a_silent_run_is_closed_with_what_its_nodes_say(alice: Client, sql: asyncpg.Connection) -> None:
    started = await think(alice, subscription="free")
    run_id = started.run.run_id
    await alice.beat(run_id, 12)
    await grow_stale(sql, run_id)
    (waiting,) = await alice.unsettled()
    run = waiting.run
    assert (run.run_id, run.status, run.partial, run.abandoned) == (run_id, run_pb2.RUN_STATUS_PARTIAL, True, True)
    assert (list(run.usage), run.details.node_count, run.details.fallbacks, run.last_seq) == (STORED, 4, 1, 12)
    assert (waiting.owner, waiting.subscription) == (alice.caller.user, "free")
    kept = await alice.run(run_id)
    assert (kept.status, kept.abandoned, list(kept.usage), kept.details) == (
        run.status,
        True,
        STORED,
        run.details,
    )


async def test_the_usage_of_a_silent_run_is_not_that_of_the_runs_before_it(
    alice: Client, sql: asyncpg.Connection
) -> None:
    first = await think(alice)
    await alice.answer(first.run.run_id, "a1", "n4")
    await alice.settle(first.run.run_id)
    second = await alice.start(conversation_id=first.conversation.conversation_id)
    await alice.append(second.run.run_id, step("m1", "a1"))
    await grow_stale(sql, second.run.run_id)
    (waiting,) = await alice.unsettled()
    assert (waiting.run.details.node_count, [usage.input_tokens for usage in waiting.run.usage]) == (1, [10])


async def test_a_silent_run_in_the_way_of_a_question_is_closed_with_what_its_nodes_say(
    alice: Client, sql: asyncpg.Connection
) -> None:
    old = await think(alice)
    await grow_stale(sql, old.run.run_id)
    await alice.start(conversation_id=old.conversation.conversation_id)
    (waiting,) = await alice.unsettled()
    assert (waiting.run.run_id, waiting.run.abandoned, list(waiting.run.usage)) == (old.run.run_id, True, STORED)


async def test_two_that_list_at_once_close_silent_runs_once_and_no_others(
    alice: Client, alice_elsewhere: Client, sql: asyncpg.Connection
) -> None:
    silent = [(await think(alice)).run.run_id for _ in range(5)]
    alive = (await alice.start()).run.run_id
    for run_id in silent:
        await grow_stale(sql, run_id)
    await asyncio.gather(*(client.unsettled() for client in [alice, alice_elsewhere] * 3))
    assert sorted(each.run.run_id for each in await alice.unsettled()) == sorted(silent)
    assert (await alice.run(alive)).status == run_pb2.RUN_STATUS_RUNNING


async def test_a_run_whose_tree_does_not_open_is_closed_all_the_same(alice: Client, sql: asyncpg.Connection) -> None:
    damaged, whole = await think(alice), await think(alice)
    conversation_id = damaged.conversation.conversation_id
    await sql.execute("UPDATE treestore.thought_tree_delta SET nodes = 'x' WHERE conversation_id = $1", conversation_id)
    for started in (damaged, whole):
        await grow_stale(sql, started.run.run_id)
    used = {each.run.run_id: list(each.run.usage) for each in await alice.unsettled()}
    assert used == {damaged.run.run_id: [], whole.run.run_id: STORED}


async def test_a_heartbeat_at_the_last_moment_keeps_a_silent_run_going(
    alice: Client, first: tuple[str, Store], sql: asyncpg.Connection
) -> None:
    started = await alice.start()
    await grow_stale(sql, started.run.run_id)

    async def close(tx: Transaction) -> bool:
        active = await tx.runs.active(uuid.UUID(started.conversation.conversation_id))
        assert active is not None
        assert active.stale
        await alice.beat(started.run.run_id)
        return await tx.runs.abandon(active, even_alive=False, usage=(), details=Details(), sealed=None)

    closed = await first[1].transact(close)
    run = await alice.run(started.run.run_id)
    assert (closed, run.status, run.partial) == (False, run_pb2.RUN_STATUS_RUNNING, False)


async def test_a_finish_and_a_closing_at_once_leave_one_end(
    alice: Client, alice_elsewhere: Client, sql: asyncpg.Connection
) -> None:
    for _ in range(10):
        started = await think(alice)
        await grow_stale(sql, started.run.run_id)
        await asyncio.gather(
            alice.finish(started.run.run_id, usage=USAGE), alice_elsewhere.unsettled(), return_exceptions=True
        )
        (waiting,) = await alice.unsettled()
        kept = await alice.run(started.run.run_id)
        assert (waiting.run.status, waiting.run.usage) == (kept.status, kept.usage)
        assert list(kept.usage) == (STORED if kept.abandoned else USAGE)
        await alice.settle(started.run.run_id)


async def test_what_waits_for_the_books_holds_no_text(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start(message="canari-question", title="canari-titre", idempotency_key=new_id(),
                                request_hash=bytes(32))  # fmt: skip
    await alice.answer(started.run.run_id, "a1", content="canari-réponse", details=DETAILS)
    assert "canari" not in str(dict(await sql.fetchrow("SELECT * FROM treestore.unsettled_run")))


@pytest.mark.parametrize("page_size", [-1, 201])
async def test_a_page_size_out_of_bounds_is_refused(alice: Client, page_size: int) -> None:
    assert await refused(alice.unsettled(page_size)) == "INVALID_ARGUMENT"
