import math

import asyncpg
import pytest
from lintello.common.v1 import node_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from services.treestore.tree_repository import FOLD_AFTER
from tests.integration.treestore.client import Client, new_id, node, refused


async def test_a_node_is_read_as_it_was_written(alice: Client) -> None:
    started = await alice.start()
    written = node_pb2.Node(
        id="n1",
        role=node_pb2.NODE_ROLE_CRITIQUE,
        status=node_pb2.NODE_STATUS_PRUNED,
        branch="prudente",
        summary="Un résumé",
        content="Ligne 1\nLigne 2\u2028\U0001f9e0",
        score=0.0,
        input_tokens=12,
        output_tokens=34,
        model="small-1",
        run_id=started.run.run_id,
        failure="timeout",
        fallback_from="large-1",
        duration_ms=56,
    )
    await alice.append(started.run.run_id, written)
    tree = await alice.tree(started.conversation.conversation_id)
    assert (tree.format, tree.version, list(tree.nodes)) == (1, 1, [written])


async def test_a_new_conversation_has_an_empty_tree(alice: Client) -> None:
    tree = await alice.tree((await alice.create()).conversation_id)
    assert (tree.format, tree.version, len(tree.nodes), tree.active_node_id) == (1, 0, 0, "")


async def test_a_second_append_with_the_same_ids_changes_nothing(alice: Client) -> None:
    started = await alice.start()
    first = await alice.append(started.run.run_id, node("n1", content="premier"))
    again = await alice.append(started.run.run_id, node("n1", content="second"))
    tree = await alice.tree(started.conversation.conversation_id)
    assert (first, again, [each.content for each in tree.nodes]) == (1, 1, ["premier"])


async def test_a_repeat_with_something_new_adds_only_that(alice: Client) -> None:
    started = await alice.start()
    await alice.append(started.run.run_id, node("n1"))
    await alice.append(started.run.run_id, node("n1"), node("n2", "n1"))
    tree = await alice.tree(started.conversation.conversation_id)
    assert [each.id for each in tree.nodes] == ["n1", "n2"]


async def test_a_repeat_after_the_end_of_the_run_is_the_same_answer(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    version = await alice.append(run_id, node("n1"))
    await alice.finish(run_id)
    assert await alice.append(run_id, node("n1")) == version


async def test_a_new_node_after_the_end_of_the_run_is_refused(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.finish(run_id)
    assert await refused(alice.append(run_id, node("n1"))) == "RUN_CLOSED"


async def test_an_id_that_another_run_has_used_is_refused(alice: Client) -> None:
    started = await alice.start()
    await alice.answer(started.run.run_id, "n1")
    second = await alice.start(conversation_id=started.conversation.conversation_id)
    assert await refused(alice.append(second.run.run_id, node("n1"))) == "TREE_INVALID"


@pytest.mark.parametrize(
    "nodes",
    [
        [node("a", "b"), node("b", "a")],
        [node("a", "a")],
        [node("a", "missing")],
        [node("a"), node("a")],
        [node("a"), node("b"), node("c", "a", "b", role=node_pb2.NODE_ROLE_EXECUTE)],
        [node("a", score=1.5)],
        [node("a", score=math.nan)],
        [node("a", input_tokens=-1)],
    ],
    ids=["cycle", "own parent", "no such parent", "id twice", "two parents", "score", "no number", "negative"],
)
async def test_nodes_that_break_a_rule_are_refused_and_none_is_kept(alice: Client, nodes: list[node_pb2.Node]) -> None:
    started = await alice.start()
    assert await refused(alice.append(started.run.run_id, *nodes)) == "TREE_INVALID"
    assert (await alice.tree(started.conversation.conversation_id)).version == 0


async def test_a_node_still_exploring_is_not_stored(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    with pytest.raises(RemoteError) as refusal:
        await alice.append(run_id, node("a", status=node_pb2.NODE_STATUS_EXPLORING))
    assert list(refusal.value.fields) == ["nodes[0].status"]


async def test_deltas_are_folded_into_the_snapshot(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    for index in range(FOLD_AFTER + 3):
        await alice.append(started.run.run_id, node(f"n{index}"))
    query = "SELECT version, snapshot_version, node_count FROM treestore.thought_tree WHERE conversation_id = $1"
    version, snapshot_version, node_count = await sql.fetchrow(query, conversation_id)
    count = "SELECT count(*) FROM treestore.thought_tree_delta WHERE conversation_id = $1"
    assert (version, snapshot_version, node_count) == (FOLD_AFTER + 3, FOLD_AFTER, FOLD_AFTER + 3)
    assert await sql.fetchval(count, conversation_id) == 3
    tree = await alice.tree(conversation_id)
    assert [each.id for each in tree.nodes] == [f"n{index}" for index in range(FOLD_AFTER + 3)]


async def test_deltas_wait_while_they_are_less_than_a_quarter_of_the_snapshot(
    alice: Client, sql: asyncpg.Connection
) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    for index in range(FOLD_AFTER):
        await alice.append(started.run.run_id, node(f"large{index}", content="x" * 5_000))
    for index in range(FOLD_AFTER + 1):
        await alice.append(started.run.run_id, node(f"small{index}"))
    count = "SELECT count(*) FROM treestore.thought_tree_delta WHERE conversation_id = $1"
    assert await sql.fetchval(count, conversation_id) == FOLD_AFTER + 1


async def test_a_tree_4000_deep_works(alice: Client) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    nodes = [node("n0")] + [node(f"n{index}", f"n{index - 1}") for index in range(1, 4000)]
    await alice.append(started.run.run_id, *nodes)
    request = pb.GetLineageRequest(conversation_id=conversation_id, node_id="n3999")
    assert len((await alice.call("GetLineage", request)).nodes) == 4000
    assert len((await alice.tree(conversation_id)).nodes) == 4000


async def test_a_full_tree_is_refused_more_and_read_whole(alice: Client) -> None:
    started = await alice.start()
    run_id, conversation_id = started.run.run_id, started.conversation.conversation_id
    await alice.append(run_id, *(node(f"n{index}", content="é" * 1_500) for index in range(5_000)))
    assert await refused(alice.append(run_id, node("one too many"))) == "TREE_FULL"
    assert len((await alice.tree(conversation_id)).nodes) == 5_000
    await alice.finish(run_id)
    assert await refused(alice.start(conversation_id=conversation_id)) == "TREE_FULL"


async def test_a_tree_of_16_mib_takes_no_more(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.append(run_id, *(node(f"n{index}", content="x" * 1024 * 1024) for index in range(15)))
    assert await refused(alice.append(run_id, node("large", content="x" * 1024 * 1024))) == "TREE_FULL"


async def test_a_10_mb_question_is_refused_before_anything_is_stored(alice: Client) -> None:
    conversation_id = new_id()
    attempt = alice.start(conversation_id=conversation_id, new_conversation=True, message="x" * 10_000_000)
    assert await refused(attempt) == "TOO_LARGE"
    request = pb.GetConversationRequest(conversation_id=conversation_id)
    assert await refused(alice.call("GetConversation", request)) == "NOT_FOUND"
