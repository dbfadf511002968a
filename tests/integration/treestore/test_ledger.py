import asyncio

import asyncpg
import pytest
from lintello.common.v1 import run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from tests.integration.treestore.client import Client, grow_stale, new_id, node, refused

USAGE = [
    run_pb2.Usage(model="small-1", input_tokens=100, output_tokens=20),
    run_pb2.Usage(model="large-1", output_tokens=5),
]
DETAILS = pb.RunDetails(
    schema="chain",
    mode="recherche",
    complexity=4,
    display_template="steps",
    duration_ms=1234,
    cost_eur=0.002,
    node_count=2,
    fallbacks=1,
    retries=3,
)


async def test_a_start_stores_the_question_the_run_and_the_conversation(alice: Client) -> None:
    started = await alice.start(message="Pourquoi le ciel est-il bleu ?", title="Le ciel")
    messages = (await alice.messages(started.conversation.conversation_id)).messages
    assert [(each.role, each.content, each.run_id) for each in messages] == [
        (pb.ROLE_USER, "Pourquoi le ciel est-il bleu ?", started.run.run_id)
    ]
    assert (started.conversation.title, started.run.status) == ("Le ciel", run_pb2.RUN_STATUS_RUNNING)


async def test_a_repeated_start_is_the_same_answer_without_a_second_message(alice: Client) -> None:
    ids = {"run_id": new_id(), "message_id": new_id(), "conversation_id": new_id()}
    answers = [await alice.start(**ids, new_conversation=True) for _ in range(2)]
    assert answers[0] == answers[1]
    assert len((await alice.messages(ids["conversation_id"])).messages) == 1


async def test_the_same_start_ten_times_at_once_is_one_run(alice: Client) -> None:
    ids = {"run_id": new_id(), "message_id": new_id(), "conversation_id": new_id()}
    answers = await asyncio.gather(*(alice.start(**ids, new_conversation=True) for _ in range(10)))
    assert all(each.run == answers[0].run for each in answers)
    assert len((await alice.messages(ids["conversation_id"])).messages) == 1


async def test_twenty_questions_at_once_start_one_run(alice: Client, alice_elsewhere: Client) -> None:
    conversation_id = (await alice.create()).conversation_id
    clients = [alice, alice_elsewhere] * 10
    answers = await asyncio.gather(
        *(client.start(conversation_id=conversation_id) for client in clients), return_exceptions=True
    )
    reasons = [answer.reason for answer in answers if isinstance(answer, RemoteError)]
    assert reasons == ["RUN_IN_PROGRESS"] * 19
    assert len((await alice.messages(conversation_id)).messages) == 1


async def test_a_question_in_a_conversation_that_is_not_there_is_not_found(alice: Client) -> None:
    assert await refused(alice.start(conversation_id=new_id())) == "NOT_FOUND"


@pytest.mark.parametrize("field", ["run_id", "message_id"])
async def test_an_id_that_stands_for_something_else_is_taken(alice: Client, bob: Client, field: str) -> None:
    started = await alice.start()
    taken = {field: getattr(started.run, field)}
    assert await refused(bob.start(**taken)) == "ID_TAKEN"
    assert await refused(alice.start(**taken)) == "ID_TAKEN"


async def test_a_refused_start_leaves_no_conversation(alice: Client) -> None:
    started = await alice.start()
    conversation_id = new_id()
    await refused(alice.start(run_id=started.run.run_id, conversation_id=conversation_id, new_conversation=True))
    request = pb.GetConversationRequest(conversation_id=conversation_id)
    assert await refused(alice.call("GetConversation", request)) == "NOT_FOUND"


async def test_a_new_conversation_needs_a_new_id(alice: Client) -> None:
    made = await alice.create()
    assert await refused(alice.start(conversation_id=made.conversation_id, new_conversation=True)) == "ID_TAKEN"


async def test_a_stale_run_in_the_way_is_closed_as_partial(alice: Client, sql: asyncpg.Connection) -> None:
    old = await alice.start()
    await grow_stale(sql, old.run.run_id)
    await alice.start(conversation_id=old.conversation.conversation_id)
    closed = await alice.run(old.run.run_id)
    assert (closed.status, closed.partial, closed.abandoned, closed.HasField("ended_at")) == (
        run_pb2.RUN_STATUS_PARTIAL,
        True,
        True,
        True,
    )


async def test_a_run_reads_partial_once_its_heartbeat_is_stale(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start()
    fresh = await alice.run(started.run.run_id)
    await grow_stale(sql, started.run.run_id)
    stale = await alice.run(started.run.run_id)
    assert [(run.status, run.partial) for run in (fresh, stale)] == [
        (run_pb2.RUN_STATUS_RUNNING, False),
        (run_pb2.RUN_STATUS_RUNNING, True),
    ]


async def test_a_heartbeat_keeps_a_run_alive(alice: Client, sql: asyncpg.Connection) -> None:
    started = await alice.start()
    await grow_stale(sql, started.run.run_id)
    await alice.beat(started.run.run_id)
    assert (await alice.run(started.run.run_id)).partial is False


async def test_late_writes_to_a_run_that_was_given_up_are_refused(alice: Client, sql: asyncpg.Connection) -> None:
    run_id = (await alice.start()).run.run_id
    await grow_stale(sql, run_id)
    await alice.unsettled()
    assert await refused(alice.beat(run_id)) == "RUN_CLOSED"
    assert await refused(alice.append(run_id, node("n1"))) == "RUN_CLOSED"
    assert await refused(alice.finish(run_id)) == "RUN_CLOSED"
    assert await refused(alice.finish(run_id, status=run_pb2.RUN_STATUS_PARTIAL)) == "RUN_CLOSED"


async def test_a_finish_stores_everything_at_once(alice: Client) -> None:
    started = await alice.start()
    conversation_id = started.conversation.conversation_id
    await alice.append(started.run.run_id, node("n1"))
    answer_id = await alice.answer(
        started.run.run_id,
        "n2",
        "n1",
        usage=USAGE,
        details=DETAILS,
        mode="recherche",
        mode_source=pb.MODE_SOURCE_DETECTED,
        model="large-1",
    )
    question, answer = (await alice.messages(conversation_id)).messages
    assert (answer.message_id, answer.reply_to, answer.node_id) == (answer_id, question.message_id, "n2")
    assert (answer.content, answer.model, answer.tokens) == ("Parce que.", "large-1", 125)
    assert (answer.run.status, answer.run.partial, answer.run.details) == (run_pb2.RUN_STATUS_DONE, False, DETAILS)
    assert list(answer.run.usage) == USAGE
    assert (answer.run.answer_id, answer.run.answer_node_id) == (answer_id, "n2")
    assert not question.HasField("run")
    tree = await alice.tree(conversation_id)
    assert [each.id for each in tree.nodes] == ["n1", "n2"]
    assert tree.active_node_id == "n2"
    request = pb.GetConversationRequest(conversation_id=conversation_id)
    conversation = (await alice.call("GetConversation", request)).conversation
    assert (conversation.mode, conversation.mode_source) == ("recherche", pb.MODE_SOURCE_DETECTED)


async def test_a_repeated_finish_is_the_same_answer_without_a_second_effect(alice: Client) -> None:
    started = await alice.start()
    message_id = new_id()
    given = {
        "message_id": message_id,
        "content": "Parce que.",
        "nodes": [node("n1", message_id=message_id)],
        "active_node_id": "n1",
        "details": DETAILS,
    }
    runs = [await alice.finish(started.run.run_id, **given) for _ in range(2)]
    assert runs[0] == runs[1]
    conversation_id = started.conversation.conversation_id
    assert len((await alice.messages(conversation_id)).messages) == 2
    tree = await alice.tree(conversation_id)
    assert (tree.version, len(tree.nodes)) == (1, 1)


async def test_another_end_than_the_first_is_refused(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.finish(run_id, status=run_pb2.RUN_STATUS_STOPPED)
    assert await refused(alice.finish(run_id, status=run_pb2.RUN_STATUS_DONE)) == "RUN_CLOSED"


@pytest.mark.parametrize(
    ("status", "failed", "partial"),
    [
        (run_pb2.RUN_STATUS_DONE, False, False),
        (run_pb2.RUN_STATUS_DONE, True, True),
        (run_pb2.RUN_STATUS_PARTIAL, False, True),
        (run_pb2.RUN_STATUS_STOPPED, False, True),
        (run_pb2.RUN_STATUS_FAILED, False, True),
    ],
)
async def test_a_run_is_partial_unless_it_is_done_without_a_failed_step(
    alice: Client, status: run_pb2.RunStatus, failed: bool, partial: bool
) -> None:
    run_id = (await alice.start()).run.run_id
    assert (await alice.finish(run_id, status=status, partial=failed)).partial is partial


async def test_a_refused_finish_leaves_the_run_as_it_was(alice: Client) -> None:
    started = await alice.start()
    message_id = new_id()
    bad = [node("n1", "missing", message_id=message_id)]
    assert (
        await refused(alice.finish(started.run.run_id, message_id=message_id, content="x", nodes=bad)) == "TREE_INVALID"
    )
    assert (await alice.run(started.run.run_id)).status == run_pb2.RUN_STATUS_RUNNING
    assert len((await alice.messages(started.conversation.conversation_id)).messages) == 1


async def test_an_active_node_must_be_in_the_tree(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    with pytest.raises(RemoteError) as refusal:
        await alice.finish(run_id, active_node_id="missing")
    assert list(refusal.value.fields) == ["active_node_id"]


async def test_the_next_question_continues_the_active_node(alice: Client) -> None:
    first = await alice.start()
    await alice.answer(first.run.run_id, "a1")
    second = await alice.start(conversation_id=first.conversation.conversation_id)
    assert second.run.parent_node_id == "a1"


async def test_a_question_may_continue_the_root_or_any_node(alice: Client) -> None:
    first = await alice.start()
    conversation_id = first.conversation.conversation_id
    await alice.append(first.run.run_id, node("n1"))
    await alice.answer(first.run.run_id, "a1", "n1")
    for parent in ("", "n1"):
        started = await alice.start(conversation_id=conversation_id, parent_node_id=parent)
        await alice.finish(started.run.run_id)
        assert started.run.parent_node_id == parent


async def test_a_question_at_a_node_that_is_not_there_is_not_found(alice: Client) -> None:
    conversation_id = (await alice.create()).conversation_id
    assert await refused(alice.start(conversation_id=conversation_id, parent_node_id="../../n1")) == "NOT_FOUND"


async def test_late_writes_to_a_deleted_conversation_are_not_found(alice: Client) -> None:
    started = await alice.start()
    run_id = started.run.run_id
    await alice.delete(started.conversation.conversation_id)
    assert await refused(alice.append(run_id, node("n1"))) == "NOT_FOUND"
    assert await refused(alice.beat(run_id)) == "NOT_FOUND"
    assert await refused(alice.answer(run_id, "n1")) == "NOT_FOUND"
    assert await refused(alice.run(run_id)) == "NOT_FOUND"


async def test_deleting_while_a_run_appends_leaves_nothing_behind(alice: Client, sql: asyncpg.Connection) -> None:
    for _ in range(10):
        started = await alice.start()
        conversation_id = started.conversation.conversation_id
        await asyncio.gather(
            *(alice.append(started.run.run_id, node(f"n{index}")) for index in range(5)),
            alice.delete(conversation_id),
            return_exceptions=True,
        )
        query = "SELECT count(*) FROM treestore.thought_tree_delta WHERE conversation_id = $1"
        assert await sql.fetchval(query, conversation_id) == 0
