from lintello.common.v1 import node_pb2, run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from tests.integration.treestore.client import Client, new_id, node, refused

DETAILS = pb.RunDetails(schema="chain", mode="recherche", complexity=4, duration_ms=1234, cost_eur=0.002)


async def test_a_lineage_has_its_answers_each_with_its_question(alice: Client) -> None:
    first = await alice.start(message="Q1")
    conversation_id = first.conversation.conversation_id
    await alice.answer(first.run.run_id, "a1", content="A1")
    second = await alice.start(conversation_id=conversation_id, message="Q2")
    await alice.append(second.run.run_id, node("n2", "a1"))
    await alice.answer(second.run.run_id, "a2", "n2", content="A2")
    other = await alice.start(conversation_id=conversation_id, message="Q3", parent_node_id="a1")
    await alice.answer(other.run.run_id, "a3", "a1", content="A3")
    pending = await alice.start(conversation_id=conversation_id, message="Q4", parent_node_id="a2")
    assert pending.run.parent_node_id == "a2"
    request = pb.GetLineageRequest(conversation_id=conversation_id, node_id="a2")
    lineage = await alice.call("GetLineage", request)
    assert [each.id for each in lineage.nodes] == ["a1", "n2", "a2"]
    assert [each.content for each in lineage.messages] == ["Q1", "A1", "Q2", "A2"]


async def test_the_lineage_of_a_node_that_is_not_there_is_not_found(alice: Client) -> None:
    conversation_id = (await alice.create()).conversation_id
    request = pb.GetLineageRequest(conversation_id=conversation_id, node_id="../n1")
    assert await refused(alice.call("GetLineage", request)) == "NOT_FOUND"


async def test_a_tree_names_the_runs_of_its_nodes_the_oldest_first(alice: Client) -> None:
    first = await alice.start()
    conversation_id = first.conversation.conversation_id
    await alice.answer(first.run.run_id, "a1", details=DETAILS)
    silent = await alice.start(conversation_id=conversation_id)
    await alice.finish(silent.run.run_id, status=run_pb2.RUN_STATUS_FAILED)
    third = await alice.start(conversation_id=conversation_id)
    await alice.append(third.run.run_id, node("n1", "a1"))
    runs = (await alice.tree(conversation_id)).runs
    assert [each.run_id for each in runs] == [first.run.run_id, third.run.run_id]
    assert runs[0].details == DETAILS


async def test_messages_come_in_pages_the_oldest_first(alice: Client) -> None:
    conversation_id = (await alice.create()).conversation_id
    for index in range(3):
        started = await alice.start(conversation_id=conversation_id, message=f"Q{index}")
        await alice.answer(started.run.run_id, f"a{index}", content=f"A{index}")
    listed, token, pages = [], "", 0
    while pages == 0 or token:
        answer = await alice.messages(conversation_id, page_size=4, page_token=token)
        listed += [each.content for each in answer.messages]
        token, pages = answer.next_page_token, pages + 1
    assert (listed, pages) == (["Q0", "A0", "Q1", "A1", "Q2", "A2"], 2)


async def test_a_page_of_large_messages_ends_early_and_loses_none(alice: Client) -> None:
    conversation_id = (await alice.create()).conversation_id
    large = "é" * (2 * 1024 * 1024)
    for index in range(4):
        started = await alice.start(conversation_id=conversation_id)
        message_id = new_id()
        at = node(f"a{index}", message_id=message_id, role=node_pb2.NODE_ROLE_CONVERSATION)
        await alice.finish(started.run.run_id, message_id=message_id, content=large, nodes=[at])
    pages = [await alice.messages(conversation_id)]
    while pages[-1].next_page_token:
        pages.append(await alice.messages(conversation_id, page_token=pages[-1].next_page_token))
    sizes = [len(each.content) for page in pages for each in page.messages]
    assert sizes == [len("Pourquoi ?"), len(large)] * 4
    assert len(pages) > 1
