"""Two writers on one tree, readers beside a writer, callers that leave."""

import asyncio

import asyncpg
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from services.treestore.tree_repository import FOLD_AFTER
from tests.integration.treestore.client import Client, node


async def test_two_writers_on_two_replicas_lose_no_node(alice: Client, alice_elsewhere: Client) -> None:
    started = await alice.start()
    await alice.append(started.run.run_id, node("root"))

    async def write(client: Client, name: str) -> None:
        for index in range(150):
            await client.append(started.run.run_id, node(f"{name}{index}", f"{name}{index - 1}" if index else "root"))

    await asyncio.gather(write(alice, "a"), write(alice_elsewhere, "b"))
    tree = await alice.tree(started.conversation.conversation_id)
    expected = {"root"} | {f"{name}{index}" for name in "ab" for index in range(150)}
    assert ({each.id for each in tree.nodes}, len(tree.nodes), tree.version) == (expected, 301, 301)


async def test_many_appends_at_once_on_two_replicas_lose_no_node(alice: Client, alice_elsewhere: Client) -> None:
    started = await alice.start()
    clients = [alice, alice_elsewhere] * 100
    await asyncio.gather(*(each.append(started.run.run_id, node(f"n{index}")) for index, each in enumerate(clients)))
    tree = await alice.tree(started.conversation.conversation_id)
    assert {each.id for each in tree.nodes} == {f"n{index}" for index in range(200)}


async def test_the_same_append_on_two_replicas_at_once_adds_its_node_once(
    alice: Client, alice_elsewhere: Client
) -> None:
    started = await alice.start()
    for index in range(20):
        await asyncio.gather(*(each.append(started.run.run_id, node(f"n{index}")) for each in (alice, alice_elsewhere)))
    tree = await alice.tree(started.conversation.conversation_id)
    assert [each.id for each in tree.nodes] == [f"n{index}" for index in range(20)]


async def test_readers_see_a_whole_tree_while_it_is_folded(alice: Client, alice_elsewhere: Client) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    done = asyncio.Event()

    async def write() -> None:
        for index in range(2 * FOLD_AFTER):
            await alice.append(started.run.run_id, node(f"n{index}"))
        done.set()

    async def read() -> list[int]:
        counts = []
        while not done.is_set():
            tree = await alice_elsewhere.tree(conversation_id)
            assert tree.version == len(tree.nodes)
            counts.append(len(tree.nodes))
        return counts

    _, counts = await asyncio.gather(write(), read())
    assert counts == sorted(counts)


async def test_calls_given_up_while_they_wait_leave_no_connection_behind(
    alice: Client, sql: asyncpg.Connection
) -> None:
    started = await alice.start()
    conversation_id, run_id = started.conversation.conversation_id, started.run.run_id
    async with sql.transaction():
        await sql.execute("SELECT 1 FROM treestore.conversation WHERE id = $1 FOR UPDATE", conversation_id)
        request = pb.AppendNodesRequest(run_id=run_id, nodes=[node("given up")])
        for _ in range(3):
            attempts = (alice.call("AppendNodes", request, timeout=0.3) for _ in range(20))
            ended = await asyncio.gather(*attempts, return_exceptions=True)
            assert all(isinstance(each, RemoteError) for each in ended)
    await alice.append(run_id, node("kept"))
    assert "kept" in {each.id for each in (await alice.tree(conversation_id)).nodes}
