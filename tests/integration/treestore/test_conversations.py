import asyncio

import asyncpg
import pytest
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from tests.integration.treestore.client import Client, new_id, node


async def page(client: Client, page_size: int = 0, page_token: str = "") -> pb.ListConversationsResponse:
    request = pb.ListConversationsRequest(page_size=page_size, page_token=page_token)
    answer: pb.ListConversationsResponse = await client.call("ListConversations", request)
    return answer


async def test_a_conversation_is_read_as_it_was_made(alice: Client) -> None:
    made = await alice.create(title="Élargir l'atelier", mode="recherche")
    read = await alice.call("GetConversation", pb.GetConversationRequest(conversation_id=made.conversation_id))
    assert read.conversation == made
    assert (made.title, made.mode, made.mode_source) == ("Élargir l'atelier", "recherche", pb.MODE_SOURCE_USER)


async def test_creating_one_again_with_the_same_id_gives_the_same_conversation(alice: Client) -> None:
    made = await alice.create(conversation_id=new_id(), title="Premier")
    assert await alice.create(conversation_id=made.conversation_id, title="Second") == made


async def test_the_same_new_id_twenty_times_at_once_is_one_conversation(alice: Client) -> None:
    conversation_id = new_id()
    made = await asyncio.gather(*(alice.create(conversation_id=conversation_id) for _ in range(20)))
    assert all(each == made[0] for each in made)


async def test_an_id_of_somebody_else_is_taken(alice: Client, bob: Client) -> None:
    made = await alice.create()
    with pytest.raises(RemoteError) as refusal:
        await bob.create(conversation_id=made.conversation_id)
    assert refusal.value.reason == "ID_TAKEN"


async def test_the_one_that_changed_last_comes_first(alice: Client) -> None:
    old, new = await alice.create(title="a"), await alice.create(title="b")
    await alice.start(conversation_id=old.conversation_id)
    listed = [each.conversation_id for each in (await page(alice)).conversations]
    assert listed == [old.conversation_id, new.conversation_id]


async def test_pages_show_each_conversation_once_and_end(alice: Client) -> None:
    made = [(await alice.create()).conversation_id for _ in range(7)]
    listed, token, pages = [], "", 0
    while pages == 0 or token:
        answer = await page(alice, page_size=3, page_token=token)
        listed += [each.conversation_id for each in answer.conversations]
        token, pages = answer.next_page_token, pages + 1
    assert (listed, pages) == (made[::-1], 3)


async def test_a_full_last_page_has_no_token(alice: Client) -> None:
    for _ in range(3):
        await alice.create()
    assert (await page(alice, page_size=3)).next_page_token == ""


async def test_nobody_sees_the_conversations_of_another(alice: Client, bob: Client) -> None:
    await alice.create(title="privé")
    assert len((await page(bob)).conversations) == 0


async def test_a_page_token_of_another_user_is_refused(alice: Client, bob: Client) -> None:
    for _ in range(3):
        await alice.create()
    token = (await page(alice, page_size=2)).next_page_token
    with pytest.raises(RemoteError) as refusal:
        await page(bob, page_token=token)
    assert (refusal.value.reason, list(refusal.value.fields)) == ("INVALID_ARGUMENT", ["page_token"])


async def test_a_token_for_conversations_is_refused_for_messages(alice: Client) -> None:
    made = [await alice.create() for _ in range(3)]
    token = (await page(alice, page_size=2)).next_page_token
    with pytest.raises(RemoteError) as refusal:
        await alice.messages(made[0].conversation_id, page_token=token)
    assert list(refusal.value.fields) == ["page_token"]


async def test_an_update_changes_only_what_is_present(alice: Client) -> None:
    made = await alice.create(title="Avant", mode="code")
    request = pb.UpdateConversationRequest(conversation_id=made.conversation_id, title="Après")
    changed = (await alice.call("UpdateConversation", request)).conversation
    assert (changed.title, changed.mode, changed.mode_source) == ("Après", "code", pb.MODE_SOURCE_USER)


async def test_an_empty_mode_asks_for_detection_again(alice: Client) -> None:
    made = await alice.create(mode="code")
    request = pb.UpdateConversationRequest(conversation_id=made.conversation_id, mode="")
    changed = (await alice.call("UpdateConversation", request)).conversation
    assert (changed.mode, changed.mode_source) == ("", pb.MODE_SOURCE_UNSPECIFIED)


@pytest.mark.parametrize("fields", [{}, {"title": ""}, {"title": "x" * 201}, {"mode": "../"}], ids=str)
async def test_an_update_that_makes_no_sense_is_refused(alice: Client, fields: dict[str, str]) -> None:
    made = await alice.create()
    with pytest.raises(RemoteError) as refusal:
        await alice.call(
            "UpdateConversation", pb.UpdateConversationRequest(conversation_id=made.conversation_id, **fields)
        )
    assert refusal.value.reason == "INVALID_ARGUMENT"


async def test_a_title_keeps_odd_characters_but_nul(alice: Client) -> None:
    made = await alice.create(title="a\0b\n\u2028\U0001f9e0")
    assert made.title == "ab\n\u2028\U0001f9e0"


async def test_deleting_again_is_the_same_answer(alice: Client) -> None:
    made = await alice.create()
    await alice.delete(made.conversation_id)
    await alice.delete(made.conversation_id)


async def test_a_deletion_leaves_nothing_but_id_and_owner(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    await alice.append(started.run.run_id, node("n1"))
    await alice.delete(conversation_id)
    for table in ("message", "run", "thought_tree", "thought_tree_delta"):
        assert (
            await sql.fetchval(f"SELECT count(*) FROM treestore.{table} WHERE conversation_id = $1", conversation_id)
            == 0
        )
    assert await sql.fetchval("SELECT count(*) FROM treestore.conversation WHERE id = $1", conversation_id) == 0
    kept = await sql.fetchrow("SELECT * FROM treestore.deleted_conversation WHERE id = $1", conversation_id)
    assert set(dict(kept)) == {"id", "owner", "deleted_at"}


async def test_what_another_deleted_is_not_found_as_if_it_had_never_been(alice: Client, bob: Client) -> None:
    made = await alice.create()
    await alice.delete(made.conversation_id)
    refusals = []
    for conversation_id in (made.conversation_id, new_id()):
        with pytest.raises(RemoteError) as refusal:
            await bob.delete(conversation_id)
        refusals.append((refusal.value.code, refusal.value.reason, refusal.value.message, refusal.value.metadata))
    assert refusals[0] == refusals[1]
    assert refusals[0][1] == "NOT_FOUND"


async def test_the_id_of_a_deleted_conversation_is_taken(alice: Client) -> None:
    made = await alice.create()
    await alice.delete(made.conversation_id)
    for attempt in (
        alice.create(conversation_id=made.conversation_id),
        alice.start(conversation_id=made.conversation_id, new_conversation=True),
    ):
        with pytest.raises(RemoteError) as refusal:
            await attempt
        assert refusal.value.reason == "ID_TAKEN"


async def test_creating_while_deleting_never_brings_a_conversation_back(alice: Client) -> None:
    for _ in range(20):
        made = await alice.create()
        await asyncio.gather(
            alice.delete(made.conversation_id),
            *(alice.create(conversation_id=made.conversation_id) for _ in range(3)),
            return_exceptions=True,
        )
        with pytest.raises(RemoteError) as refusal:
            await alice.call("GetConversation", pb.GetConversationRequest(conversation_id=made.conversation_id))
        assert refusal.value.reason == "NOT_FOUND"
