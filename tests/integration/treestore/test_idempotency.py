"""One idempotency key of one user starts one run, however often and wherever it is said."""

import asyncio
import hashlib
from typing import Any

import asyncpg
import pytest
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from tests.integration.treestore.client import Client, new_id, refused

HASH = hashlib.sha256(b"Pourquoi ?").digest()
OTHER = hashlib.sha256(b"Comment ?").digest()


async def ask(client: Client, key: str, request_hash: bytes = HASH, **fields: Any) -> pb.StartRunResponse:
    """A start with fresh ids and a key."""
    return await client.start(idempotency_key=key, request_hash=request_hash, **fields)


async def counts(sql: asyncpg.Connection, owner: str) -> tuple[int, int, int]:
    """How many conversations, messages and runs a user has."""
    query = """SELECT (SELECT count(*) FROM treestore.conversation WHERE owner = $1),
                      (SELECT count(*) FROM treestore.message JOIN treestore.conversation c ON c.id = conversation_id
                       WHERE c.owner = $1),
                      (SELECT count(*) FROM treestore.run WHERE owner = $1)"""
    return tuple(await sql.fetchrow(query, owner))


async def test_twenty_twins_at_once_start_one_run_with_one_message_in_one_conversation(
    alice: Client, alice_elsewhere: Client, sql: asyncpg.Connection
) -> None:
    key = new_id()
    answers = await asyncio.gather(*(ask(client, key) for client in [alice, alice_elsewhere] * 10))
    assert {each.run.run_id for each in answers} == {answers[0].run.run_id}
    assert {each.conversation.conversation_id for each in answers} == {answers[0].conversation.conversation_id}
    assert await counts(sql, alice.caller.user) == (1, 1, 1)


async def test_twins_in_a_conversation_that_is_there_start_one_run(
    alice: Client, alice_elsewhere: Client, sql: asyncpg.Connection
) -> None:
    conversation_id, key = (await alice.create()).conversation_id, new_id()
    clients = [alice, alice_elsewhere] * 10
    answers = await asyncio.gather(*(ask(client, key, conversation_id=conversation_id) for client in clients))
    assert {each.run.run_id for each in answers} == {answers[0].run.run_id}
    assert await counts(sql, alice.caller.user) == (1, 1, 1)


async def test_a_key_that_came_before_answers_with_its_run_as_it_is_now(alice: Client) -> None:
    first = await ask(alice, "k 1")
    await alice.answer(first.run.run_id, "a1")
    again = await ask(alice, "k 1")
    assert again.run == await alice.run(first.run.run_id)
    assert (again.event_key, again.conversation.active_node_id) == (first.event_key, "a1")


async def test_the_same_start_repeated_with_its_key_is_the_same_answer(alice: Client) -> None:
    ids: dict[str, Any] = {
        "run_id": new_id(),
        "message_id": new_id(),
        "conversation_id": new_id(),
        "new_conversation": True,
    }
    answers = [await ask(alice, "k", **ids) for _ in range(2)]
    assert answers[0] == answers[1]


async def test_a_key_with_another_request_is_refused_and_stores_nothing(alice: Client, sql: asyncpg.Connection) -> None:
    await ask(alice, "k")
    with pytest.raises(RemoteError) as refusal:
        await ask(alice, "k", OTHER)
    assert (refusal.value.code.name, refusal.value.reason) == ("ALREADY_EXISTS", "IDEMPOTENCY_KEY_REUSED")
    assert await counts(sql, alice.caller.user) == (1, 1, 1)


async def test_the_same_key_of_another_user_starts_another_run(alice: Client, bob: Client) -> None:
    runs = [await ask(alice, "k"), await ask(bob, "k", OTHER)]
    assert runs[0].run.run_id != runs[1].run.run_id


async def test_another_key_with_the_same_request_starts_another_run(alice: Client) -> None:
    assert (await ask(alice, "k1")).run.run_id != (await ask(alice, "k2")).run.run_id


async def test_starts_without_a_key_are_no_twins(alice: Client) -> None:
    assert (await alice.start()).run.run_id != (await alice.start()).run.run_id


async def test_a_start_that_was_refused_leaves_its_key_free(alice: Client) -> None:
    assert await refused(ask(alice, "k", conversation_id=new_id())) == "NOT_FOUND"
    assert (await ask(alice, "k", OTHER)).run.run_id


async def test_a_key_is_free_again_once_its_conversation_is_deleted(alice: Client) -> None:
    first = await ask(alice, "k")
    await alice.delete(first.conversation.conversation_id)
    assert (await ask(alice, "k", OTHER)).run.run_id != first.run.run_id


async def test_the_hash_of_a_request_does_not_stand_in_the_table(alice: Client, sql: asyncpg.Connection) -> None:
    runs = [await ask(alice, key) for key in ("k1", "k2")]
    query = "SELECT request_hash FROM treestore.run WHERE id = $1"
    kept = [await sql.fetchval(query, each.run.run_id) for each in runs]
    assert len({HASH, *kept}) == 3
