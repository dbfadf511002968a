"""The routes beside the stream: each call reaches its service and comes back in the contract's shape."""

import grpc
import httpx
import pytest
from lintello.engine.v1 import engine_pb2 as pb
from lintello.treestore.v1 import treestore_pb2 as ts

from tests.integration.gateway.away import away
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.process import Gateway
from tests.integration.gateway.scripts import (
    ANSWER,
    AT,
    CONVERSATION,
    DONE,
    QUESTION,
    RUN,
    STARTED,
    node,
    plays,
)

STORED = ts.Conversation(
    conversation_id=CONVERSATION,
    title="Titre",
    mode="recherche",
    mode_source=ts.MODE_SOURCE_USER,
    created_at=AT,
    updated_at=AT,
)
THOUGHT = ts.Run(
    run_id=RUN,
    partial=True,
    details=ts.RunDetails(schema="chain", mode="recherche", complexity=4, display_template="drawer", duration_ms=1200),
)
MESSAGES = ts.ListMessagesResponse(
    messages=[
        ts.Message(message_id=QUESTION, role=ts.ROLE_USER, content="?", run_id=RUN, created_at=AT),
        ts.Message(message_id=ANSWER, role=ts.ROLE_ASSISTANT, content="!", run_id=RUN, created_at=AT, run=THOUGHT),
    ],
    next_page_token="more",
)
TREE = ts.GetTreeResponse(
    format=1,
    version=7,
    nodes=[node("a", input_tokens=2), node("other", run_id="another"), node("b", "a", output_tokens=3)],
    runs=[THOUGHT],
    active_node_id="b",
)


async def test_a_conversation_has_the_shape_of_the_contract(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["GetConversation"] = ts.GetConversationResponse(conversation=STORED)
    assert (await client.get(f"/api/conversations/{CONVERSATION}")).json() == {
        "id": CONVERSATION,
        "title": "Titre",
        "mode": "recherche",
        "mode_source": "user",
        "active_node_id": None,
        "created_at": "2027-01-15T08:00:00.500Z",
        "updated_at": "2027-01-15T08:00:00.500Z",
    }


async def test_a_page_carries_limit_and_cursor_there_and_back(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["ListConversations"] = ts.ListConversationsResponse(
        conversations=[STORED], next_page_token="after"
    )
    page = (await client.get("/api/conversations?limit=7&cursor=before")).json()
    assert behind.treestore.asked[0][1] == ts.ListConversationsRequest(page_size=7, page_token="before")
    assert ([item["id"] for item in page["items"]], page["next_cursor"]) == ([CONVERSATION], "after")


async def test_the_last_page_has_no_cursor(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["ListConversations"] = ts.ListConversationsResponse()
    assert (await client.get("/api/conversations")).json() == {"items": [], "next_cursor": None}


@pytest.mark.parametrize("limit", ["0", "101", "x", "-1"])
async def test_a_limit_out_of_bounds_is_refused(client: httpx.AsyncClient, limit: str) -> None:
    response = await client.get("/api/conversations", params={"limit": limit})
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "limit")


async def test_creating_a_conversation_answers_201(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["CreateConversation"] = ts.CreateConversationResponse(conversation=STORED)
    response = await client.post("/api/conversations", json={"title": "Titre"})
    assert (response.status_code, response.json()["id"]) == (201, CONVERSATION)


async def test_a_change_carries_only_what_was_sent(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["UpdateConversation"] = ts.UpdateConversationResponse(conversation=STORED)
    await client.patch(f"/api/conversations/{CONVERSATION}", json={"title": "Neuf"})
    request = behind.treestore.asked[0][1]
    assert (request.title, request.HasField("mode")) == ("Neuf", False)


async def test_a_mode_of_null_asks_to_detect_it_again(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["UpdateConversation"] = ts.UpdateConversationResponse(conversation=STORED)
    await client.patch(f"/api/conversations/{CONVERSATION}", json={"mode": None})
    request = behind.treestore.asked[0][1]
    assert (request.HasField("mode"), request.mode, request.HasField("title")) == (True, "", False)


async def test_deleting_answers_204(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["DeleteConversation"] = ts.DeleteConversationResponse()
    assert (await client.delete(f"/api/conversations/{CONVERSATION}")).status_code == 204


async def test_each_answer_comes_with_what_its_run_thought(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers |= {"ListMessages": MESSAGES, "GetTree": TREE}
    page = (await client.get(f"/api/conversations/{CONVERSATION}/messages")).json()
    question, answer = page["items"]
    assert (question["thinking"], question["sources"], question["partial"]) == (None, [], False)
    assert (answer["run_id"], answer["partial"]) == (RUN, True)
    thinking = answer["thinking"]
    nodes = thinking.pop("tree_data")["nodes"]
    assert (nodes[0]["id"], nodes[0]["children"][0]["id"], len(nodes)) == ("a", "b", 1)
    assert thinking == {
        "schema": "chain",
        "tokens_used": 5,
        "duration_ms": 1200,
        "display_template": "drawer",
        "partial": True,
    }


async def test_classic_messages_need_no_tree(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["ListMessages"] = ts.ListMessagesResponse(messages=MESSAGES.messages[:1])
    assert (await client.get(f"/api/conversations/{CONVERSATION}/messages")).status_code == 200


async def test_a_tree_is_nested_unless_asked_for_flat(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.answers["GetTree"] = TREE
    nested = (await client.get(f"/api/conversations/{CONVERSATION}/tree")).json()
    flat = (await client.get(f"/api/conversations/{CONVERSATION}/tree?shape=flat")).json()
    assert (nested["version"], nested["active_node_id"]) == (7, "b")
    assert [one["id"] for one in nested["tree_data"]["nodes"]] == ["a", "other"]
    assert [one["id"] for one in flat["tree_data"]["nodes"]] == ["a", "other", "b"]
    assert not any("children" in one for one in flat["tree_data"]["nodes"])


async def test_a_tree_4000_deep_is_answered(client: httpx.AsyncClient, behind: Backend) -> None:
    chain = [node("0"), *(node(str(n), str(n - 1)) for n in range(1, 4000))]
    behind.treestore.answers["GetTree"] = ts.GetTreeResponse(format=1, version=1, nodes=chain)
    response = await client.get(f"/api/conversations/{CONVERSATION}/tree")
    assert (response.status_code, response.text.count('"children":[')) == (200, 4000)


@pytest.mark.parametrize("code", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT])
@pytest.mark.parametrize("odd", ["..%2F..%2Fetc", "x" * 10_000, "not-a-uuid", "%00", "%ff"])
async def test_an_odd_id_is_refused_and_never_a_fault(
    client: httpx.AsyncClient, behind: Backend, odd: str, code: grpc.StatusCode
) -> None:
    behind.treestore.errors.refuse(code, code.name)
    response = await client.get(f"/api/conversations/{odd}")
    assert response.status_code in (400, 404)
    assert response.headers["content-type"] == "application/problem+json"
    assert "x" * 20 not in response.text


async def test_somebody_elses_conversation_reads_like_one_that_is_not_there(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.treestore.errors.refuse(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "no such conversation")
    bodies = {(await client.get(f"/api/conversations/{name}")).text for name in (CONVERSATION, RUN)}
    assert len(bodies) == 1


async def test_modes_are_asked_for_in_the_readers_language(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.modes = [pb.Mode(slug="recherche", name="Research", icon="🔬", thinking_schema="chain", enabled=True)]
    page = (await client.get("/api/modes")).json()
    assert behind.engine.asked[0][1].locale == "en"
    assert page == {
        "items": [
            {
                "slug": "recherche",
                "name": "Research",
                "icon": "🔬",
                "thinking_schema": "chain",
                "thinking_config": None,
                "display_template": None,
                "discovery": False,
                "enabled": True,
                "may_think": False,
            }
        ],
        "next_cursor": None,
    }


async def test_the_question_reaches_the_engine_as_it_was_asked(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(STARTED, DONE)
    body = {"message": "Où ?", "conversation_id": CONVERSATION, "parent_node_id": "", "mode": "code", "thinking": "on"}
    await client.post("/api/chat", json={**body, "model": "large", "locale": "fr"}, headers={"Idempotency-Key": "k"})
    assert behind.engine.asked[0][1] == pb.ThinkRequest(
        message="Où ?",
        conversation_id=CONVERSATION,
        parent_node_id="",
        mode="code",
        thinking=pb.THINKING_ON,
        model="large",
        locale="fr",
        on_disconnect=pb.ON_DISCONNECT_CONTINUE,
        idempotency_key="k",
    )


async def test_a_service_that_is_away_is_503_with_a_time_to_come_back(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    async with away("treestore", behind, client):
        response = await client.get("/api/conversations")
    assert (response.status_code, response.json()["reason"]) == (503, "UNAVAILABLE")
    assert int(response.headers["retry-after"]) > 0


async def test_a_fault_of_a_service_says_nothing_of_it(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.treestore.errors.refuse(grpc.StatusCode.INTERNAL, "INTERNAL", "secret detail")
    response = await client.get("/api/conversations")
    assert (response.status_code, response.json()["detail"]) == (500, None)


async def test_a_fault_of_the_gateway_is_answered_and_logged_without_a_word_of_the_content(
    client: httpx.AsyncClient, behind: Backend, dev_gateway: Gateway
) -> None:
    nobodys = ts.Message(message_id=QUESTION, content="canary-7312", created_at=AT)
    behind.treestore.answers["ListMessages"] = ts.ListMessagesResponse(messages=[nobodys])
    response = await client.get(f"/api/conversations/{CONVERSATION}/messages")
    assert (response.status_code, response.json()["reason"]) == (500, "INTERNAL")
    assert "canary-7312" not in response.text
    assert any('"request_failed"' in line for line in dev_gateway.lines)
    assert not any("canary-7312" in line or "Traceback" in line for line in dev_gateway.lines)


async def test_a_question_is_one_trace_from_the_caller_to_the_service(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    await client.get("/api/modes", headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    assert behind.engine.traces == [trace]
