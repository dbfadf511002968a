"""The ledger of runs through the real treestore, as the engine writes and reads it."""

from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest

from kit.channel import Peer
from kit.errors import RemoteError
from kit.identity import Caller
from kit.ids import new_id
from services.engine.adapters.treestore import TreestorePeer
from services.engine.domain import (
    Details,
    Ending,
    Finish,
    ModelUsage,
    Node,
    Question,
    Role,
    Started,
    Status,
    Thinking,
    Unsettled,
)
from services.engine.ports import RunClosed, StoreAway
from services.engine.wire import request_hash
from tests.integration.treestore.client import grow_stale
from tests.servers.identity import Keys
from tests.servers.process import ServiceProcess

DETAILS = Details("chain", "general", 4, "timeline", 1200, "", 0.02, node_count=2, fallbacks=1, retries=3)
USAGE = (ModelUsage("large-1", 100, 20, False), ModelUsage("small-1", 10, 2, True))


@pytest.fixture
async def store(treestore: ServiceProcess, identity: Keys) -> AsyncIterator[TreestorePeer]:
    """Treestore, as the engine sees it."""
    peer = Peer(treestore.address, "treestore", identity.engine_signer.mint)
    yield TreestorePeer(peer)
    await peer.close()


@pytest.fixture
async def sql(treestore_database: str) -> AsyncIterator[asyncpg.Connection]:
    """The database itself."""
    connection = await asyncpg.connect(treestore_database)
    yield connection
    await connection.close()


@pytest.fixture
def alice() -> Caller:
    """A user nobody has seen before."""
    return Caller(f"alice-{new_id()}", "pro")


def question(key: str = "", message: str = "Pourquoi ?", conversation_id: str = "") -> Question:
    asked = Question(message, conversation_id, None, "", Thinking.AUTO, None, "fr", key)
    return replace(asked, request_hash=request_hash(asked)) if key else asked


async def started(store: TreestorePeer, caller: Caller, asked: Question | None = None) -> Started:
    return await store.start_run(new_id(), asked or question(), "Un titre", caller)


def step(run_id: str, *parents: str, **fields: object) -> Node:
    given = {"input_tokens": 30, "output_tokens": 5, "model": "small-1"} | fields
    return Node(new_id(), parents, Role.EXECUTE, Status.EXPLORED, "s", "c", run_id=run_id, **given)  # type: ignore[arg-type]


def end(run_id: str, ending: Ending = Ending.FAILED) -> Finish:
    return Finish(run_id, ending, True, "", "", (), "", USAGE, DETAILS, "general", False, "", last_seq=17)


async def unsettled(store: TreestorePeer, run_id: str) -> Unsettled | None:
    return next((run for run in await store.unsettled() if run.run.run_id == run_id), None)


async def test_a_run_starts_with_a_key_for_its_events_that_any_replica_gets_too(
    store: TreestorePeer, alice: Caller
) -> None:
    run = await started(store, alice)
    record = await store.get_run(run.run_id, alice)
    assert len(run.event_key) == 32
    assert record.event_key == run.event_key


async def test_two_runs_have_two_keys(store: TreestorePeer, alice: Caller) -> None:
    first = await started(store, alice)
    await store.finish(end(first.run_id), alice)
    second = await started(store, alice, question(conversation_id=first.conversation_id))
    assert first.event_key != second.event_key


async def test_the_same_request_again_is_the_run_it_started(store: TreestorePeer, alice: Caller) -> None:
    first = await started(store, alice, question("clef"))
    again = await started(store, alice, question("clef"))
    assert (again.run_id, again.conversation_id) == (first.run_id, first.conversation_id)


async def test_another_request_with_the_same_key_is_refused(store: TreestorePeer, alice: Caller) -> None:
    await started(store, alice, question("clef"))
    with pytest.raises(RemoteError) as refused:
        await started(store, alice, question("clef", "Comment ?"))
    assert refused.value.reason == "IDEMPOTENCY_KEY_REUSED"


async def test_a_heartbeat_says_how_far_the_run_is(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    assert not await store.heartbeat(run.run_id, 7, alice)
    record = await store.get_run(run.run_id, alice)
    assert (record.status, record.last_seq, record.ended_at, record.silent) == ("running", 7, None, False)


async def test_a_run_that_shall_end_hears_it_by_its_heartbeat(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    await store.request_stop(run.run_id, alice)
    assert await store.heartbeat(run.run_id, 1, alice)


async def test_stopping_a_run_that_has_ended_changes_nothing(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    await store.finish(end(run.run_id), alice)
    await store.request_stop(run.run_id, alice)
    assert (await store.get_run(run.run_id, alice)).status == "failed"


async def test_nobody_reads_or_stops_another_s_run(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    bob = Caller("bob", "pro")
    for attempt in (store.get_run(run.run_id, bob), store.request_stop(run.run_id, bob)):
        with pytest.raises(RemoteError) as refused:
            await attempt
        assert refused.value.reason == "NOT_FOUND"


async def test_the_end_of_a_run_is_read_as_it_was_written(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    await store.finish(end(run.run_id, Ending.STOPPED), alice)
    record = await store.get_run(run.run_id, alice)
    assert (record.status, record.partial, record.abandoned, record.last_seq) == ("stopped", True, False, 17)
    assert (record.details, record.usage) == (DETAILS, USAGE)
    assert record.ended_at is not None
    assert record.ended_at >= record.started_at


async def test_runs_are_listed_page_by_page_the_last_in_front(store: TreestorePeer, alice: Caller) -> None:
    ids = [(await started(store, alice)).run_id for _ in range(3)]
    first, token = await store.list_runs(2, "", "", False, alice)
    rest, end_token = await store.list_runs(2, token, "", False, alice)
    assert [run.run_id for run in (*first, *rest)] == ids[::-1]
    assert (bool(token), end_token) == (True, "")


async def test_runs_are_listed_by_conversation_and_by_whether_they_go_on(store: TreestorePeer, alice: Caller) -> None:
    over, going = [await started(store, alice) for _ in range(2)]
    await store.finish(end(over.run_id), alice)
    active, _ = await store.list_runs(0, "", "", True, alice)
    there, _ = await store.list_runs(0, "", over.conversation_id, False, alice)
    assert ([run.run_id for run in active], [run.run_id for run in there]) == ([going.run_id], [over.run_id])


async def test_a_run_that_ended_is_unsettled_until_it_is_in_the_books(store: TreestorePeer, alice: Caller) -> None:
    run = await started(store, alice)
    assert await unsettled(store, run.run_id) is None
    await store.finish(end(run.run_id), alice)
    found = await unsettled(store, run.run_id)
    assert found is not None
    assert (found.owner, found.subscription) == (alice.user, alice.subscription)
    assert (found.run.usage, found.run.details.retries, found.run.abandoned) == (USAGE, 3, False)
    await store.settle(run.run_id, alice)
    await store.settle(run.run_id, alice)
    assert await unsettled(store, run.run_id) is None


async def test_a_run_whose_engine_fell_silent_is_closed_with_what_its_nodes_used(
    store: TreestorePeer, alice: Caller, sql: asyncpg.Connection
) -> None:
    run = await started(store, alice)
    first = step(run.run_id)
    await store.append(run.run_id, [first, step(run.run_id, first.id, model="large-1")], alice)
    await grow_stale(sql, run.run_id)
    assert (await store.get_run(run.run_id, alice)).silent
    found = await unsettled(store, run.run_id)
    assert found is not None
    assert (found.run.status, found.run.abandoned, found.run.details.node_count) == ("partial", True, 2)
    assert set(found.run.usage) == {ModelUsage("small-1", 30, 5, True), ModelUsage("large-1", 30, 5, True)}
    with pytest.raises(RunClosed):
        await store.heartbeat(run.run_id, 9, alice)


async def test_settling_a_run_that_is_gone_is_no_trouble(store: TreestorePeer, alice: Caller) -> None:
    await store.settle(new_id(), alice)


async def test_a_store_that_is_away_is_told_apart_from_a_refusal(identity: Keys, alice: Caller) -> None:
    peer = Peer("127.0.0.1:1", "treestore", identity.engine_signer.mint)
    away = TreestorePeer(peer)
    attempts = (
        away.heartbeat(new_id(), 1, alice),
        away.get_run(new_id(), alice),
        away.unsettled(),
        away.settle(new_id(), alice),
    )
    for attempt in attempts:
        with pytest.raises(StoreAway):
            await attempt
    await peer.close()
