"""What is at rest is sealed, each value for its place; what doesn't open is a loss that names its row."""

from collections.abc import Awaitable
from typing import Any

import asyncpg
import pytest
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from tests.integration.treestore.client import Client, node

CANARIES = ("canari-question", "canari-réponse", "canari-titre", "canari-noeud", "canari-résumé", "canari-branche",
            "canari-gabarit")  # fmt: skip


async def loss(attempt: Awaitable[Any]) -> tuple[str, str, str]:
    """Table, column and row of the DATA_LOSS that an attempt ends in."""
    with pytest.raises(RemoteError) as refusal:
        await attempt
    assert refusal.value.reason == "DATA_LOSS"
    assert "canari" not in refusal.value.message
    metadata = refusal.value.metadata
    return metadata["table"], metadata["column"], metadata["row"]


async def talk(client: Client) -> str:
    """A conversation with every canary in it, in deltas; its id."""
    started = await client.start(message="canari-question", title="canari-titre")
    run_id = started.run.run_id
    await client.append(run_id, node("n1", content="canari-noeud", summary="canari-résumé", branch="canari-branche"))
    details = pb.RunDetails(display_template="canari-gabarit")
    await client.answer(run_id, "n2", "n1", content="canari-réponse", details=details)
    return started.conversation.conversation_id


async def columns(sql: asyncpg.Connection) -> list[tuple[str, str]]:
    """Every column of every table of the schema."""
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'treestore'"
    return [(row[0], row[1]) for row in await sql.fetch(query)]


async def places_of(sql: asyncpg.Connection, words: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Table, column and word wherever a word stands in the clear."""
    found = []
    for table, column in await columns(sql):
        kind = await sql.fetchval(f'SELECT pg_typeof("{column}")::text FROM treestore."{table}" LIMIT 1')
        for row in await sql.fetch(f'SELECT "{column}" AS value FROM treestore."{table}"'):
            value = row["value"] if kind == "bytea" else str(row["value"]).encode()
            found += [(table, column, word) for word in words if value is not None and word.encode() in value]
    return found


async def test_no_word_of_a_conversation_stands_in_any_column(alice: Client, sql: asyncpg.Connection) -> None:
    await talk(alice)
    assert await places_of(sql, CANARIES) == []


async def test_the_search_for_words_finds_one_that_is_there(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    await sql.execute(
        "UPDATE treestore.message SET content = $2 WHERE conversation_id = $1", conversation_id, b"..canari-question.."
    )
    found = await places_of(sql, CANARIES)
    await sql.execute("DELETE FROM treestore.conversation WHERE id = $1", conversation_id)
    assert set(found) == {("message", "content", "canari-question")}


async def swap(sql: asyncpg.Connection, table: str, column: str, key: str, one: object, other: object) -> None:
    """Put the value of one row into another."""
    statement = f"""UPDATE treestore.{table} SET {column} = (SELECT {column} FROM treestore.{table} WHERE {key} = $1)
                    WHERE {key} = $2"""
    await sql.execute(statement, one, other)


async def test_a_message_put_into_another_row_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    question, answer = (each.message_id for each in (await alice.messages(conversation_id)).messages)
    await swap(sql, "message", "content", "id", question, answer)
    assert await loss(alice.messages(conversation_id)) == ("message", "content", answer)


async def test_a_title_of_another_conversation_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    one, other = await talk(alice), await talk(alice)
    await swap(sql, "conversation", "title", "id", one, other)
    request = pb.GetConversationRequest(conversation_id=other)
    assert await loss(alice.call("GetConversation", request)) == ("conversation", "title", other)


async def test_a_data_key_of_another_conversation_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    one, other = await talk(alice), await talk(alice)
    await swap(sql, "conversation", "dek", "id", one, other)
    assert await loss(alice.tree(other)) == ("conversation", "dek", other)


async def test_a_value_put_into_another_column_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    statement = """UPDATE treestore.thought_tree
                   SET tree_data = (SELECT title FROM treestore.conversation WHERE id = $1)
                   WHERE conversation_id = $1"""
    await sql.execute(statement, conversation_id)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree", "tree_data", conversation_id)


async def test_a_conversation_given_to_another_owner_does_not_open(
    alice: Client, bob: Client, sql: asyncpg.Connection
) -> None:
    conversation_id = await talk(alice)
    await sql.execute("UPDATE treestore.conversation SET owner = $2 WHERE id = $1", conversation_id, bob.caller.user)
    assert await loss(bob.tree(conversation_id)) == ("conversation", "dek", conversation_id)
    await sql.execute("DELETE FROM treestore.conversation WHERE id = $1", conversation_id)


async def test_details_of_another_run_do_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    second = await alice.start(conversation_id=conversation_id)
    await alice.answer(second.run.run_id, "n3", "n2")
    one = (await alice.tree(conversation_id)).runs[0].run_id
    await swap(sql, "run", "details", "id", one, second.run.run_id)
    assert await loss(alice.run(second.run.run_id)) == ("run", "details", second.run.run_id)


async def test_two_deltas_swapped_do_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    for old, new in ((1, 100), (2, 1), (100, 2)):
        statement = "UPDATE treestore.thought_tree_delta SET version = $3 WHERE conversation_id = $1 AND version = $2"
        await sql.execute(statement, conversation_id, old, new)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree_delta", "nodes", conversation_id)


async def test_a_delta_put_into_another_version_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    statement = """UPDATE treestore.thought_tree_delta SET nodes =
                   (SELECT nodes FROM treestore.thought_tree_delta WHERE conversation_id = $1 AND version = 1)
                   WHERE conversation_id = $1 AND version = 2"""
    await sql.execute(statement, conversation_id)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree_delta", "nodes", conversation_id)


@pytest.mark.parametrize("version", [1, 2])
async def test_a_missing_delta_is_a_loss_and_not_a_smaller_tree(
    alice: Client, sql: asyncpg.Connection, version: int
) -> None:
    conversation_id = await talk(alice)
    statement = "DELETE FROM treestore.thought_tree_delta WHERE conversation_id = $1 AND version = $2"
    await sql.execute(statement, conversation_id, version)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree_delta", "nodes", conversation_id)


async def test_a_missing_tree_is_a_loss_and_not_an_empty_tree(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    await sql.execute("DELETE FROM treestore.thought_tree WHERE conversation_id = $1", conversation_id)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree", "conversation_id", conversation_id)


async def test_an_older_snapshot_put_back_does_not_open(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    query = "SELECT tree_data FROM treestore.thought_tree WHERE conversation_id = $1"
    old = await sql.fetchval(query, conversation_id)
    for index in range(70):
        await alice.append(started.run.run_id, node(f"n{index}"))
    assert await sql.fetchval(query, conversation_id) != old
    statement = "UPDATE treestore.thought_tree SET tree_data = $2 WHERE conversation_id = $1"
    await sql.execute(statement, conversation_id, old)
    assert await loss(alice.tree(conversation_id)) == ("thought_tree", "tree_data", conversation_id)


@pytest.mark.parametrize("change", ["substring(content FOR 20)", "substring(content FOR 0)", "'canari'::bytea"],
                         ids=["cut", "emptied", "plain"])  # fmt: skip
async def test_a_cut_or_plain_message_does_not_open(alice: Client, sql: asyncpg.Connection, change: str) -> None:
    conversation_id = await talk(alice)
    message_id = (await alice.messages(conversation_id)).messages[0].message_id
    await sql.execute(f"UPDATE treestore.message SET content = {change} WHERE id = $1", message_id)
    assert await loss(alice.messages(conversation_id)) == ("message", "content", message_id)


async def test_an_unknown_key_id_is_a_loss_that_names_the_row(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = await talk(alice)
    await sql.execute("UPDATE treestore.conversation SET key_id = 'gone' WHERE id = $1", conversation_id)
    assert await loss(alice.tree(conversation_id)) == ("conversation", "key_id", conversation_id)
    await sql.execute("UPDATE treestore.conversation SET key_id = 'k1' WHERE id = $1", conversation_id)


async def test_a_damaged_tree_takes_no_append_from_a_replica_that_has_to_read_it(
    alice: Client, alice_elsewhere: Client, sql: asyncpg.Connection
) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    await alice.append(started.run.run_id, node("n1"))
    statement = "UPDATE treestore.thought_tree_delta SET nodes = substring(nodes FOR 40) WHERE conversation_id = $1"
    await sql.execute(statement, conversation_id)
    place = await loss(alice_elsewhere.append(started.run.run_id, node("n2")))
    assert place == ("thought_tree_delta", "nodes", conversation_id)
