"""A question travels the whole way: gateway, engine, model, treestore, quota, all real processes."""

from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from cli.trial.server import TrialServer
from tests.e2e.client import HARD, User, answer_in, first, types


async def test_a_hard_question_streams_a_think_in_the_contracts_order(user: User) -> None:
    events = await user.ask(HARD, mode="recherche")
    assert types(events) == [
        "run_started",
        "thinking_started",
        "thinking_step",
        "content",
        "thinking_step",
        "thinking_completed",
        "done",
    ]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["run_id"] for event in events}) == 1
    steps = [event for event in events if event["type"] == "thinking_step" and event["status"] == "completed"]
    assert len(steps) >= 4
    assert first(events, "done")["thinking"] is True
    assert first(events, "done")["degraded"] is None


async def test_what_a_reload_shows_is_what_was_streamed(user: User) -> None:
    events = await user.ask(HARD, mode="recherche")
    done, completed = first(events, "done"), first(events, "thinking_completed")
    path = f"/api/conversations/{done['conversation_id']}"
    question, answer = (await user.get(f"{path}/messages"))["items"]
    assert (question["role"], question["content"]) == ("user", HARD)
    assert (answer["role"], answer["content"]) == ("assistant", answer_in(events))
    assert (answer["id"], answer["node_id"], answer["run_id"]) == (done["message_id"], done["node_id"], done["run_id"])
    assert answer["partial"] is False
    assert answer["thinking"]["schema"] == "chain"
    assert answer["thinking"]["tree_data"] == completed["tree_data"]
    tree = await user.get(f"{path}/tree")
    assert tree["active_node_id"] == done["node_id"]
    assert tree["tree_data"]["nodes"] == completed["tree_data"]["nodes"]
    flat = await user.get(f"{path}/tree", shape="flat")
    assert len(flat["tree_data"]["nodes"]) == completed["node_count"]
    conversation = await user.get(path)
    assert conversation["title"] == HARD
    assert (conversation["mode"], conversation["mode_source"]) == ("recherche", "user")


async def test_the_next_question_continues_the_conversation_under_the_active_node(
    user: User, trial: TrialServer
) -> None:
    done = first(await user.ask(HARD, mode="recherche"), "done")
    follow = await user.ask("Merci ! Et ensuite ?", conversation_id=done["conversation_id"], thinking="off")
    assert first(follow, "run_started")["parent_node_id"] == done["node_id"]
    sent = [message["content"] for message in trial.calls[-1].body["messages"]]
    assert HARD in sent
    assert sent[-1] == "Merci ! Et ensuite ?"
    tree = await user.get(f"/api/conversations/{done['conversation_id']}/tree", shape="flat")
    last = tree["tree_data"]["nodes"][-1]
    assert (last["role"], last["parents"]) == ("conversation", [done["node_id"]])


@pytest.mark.parametrize(
    ("message", "mode", "thinking"),
    [
        ("C'est quoi le SEO ?", "recherche", "auto"),
        ("C'est quoi le SEO ?", None, "auto"),
        (HARD, "conversation", "on"),
        (HARD, "recherche", "off"),
    ],
)
async def test_a_question_that_needs_no_think_gets_none(
    user: User, message: str, mode: str | None, thinking: str
) -> None:
    events = await user.ask(message, thinking=thinking, **({"mode": mode} if mode else {}))
    assert types(events) == ["run_started", "content", "done"]
    assert first(events, "done")["thinking"] is False


async def test_an_answer_can_be_had_whole(user: User) -> None:
    response = await user.http.post("/api/chat", json={"message": HARD, "mode": "recherche"})
    body = response.json()
    assert body["message"]["role"] == "assistant"
    assert body["thinking"]["schema"] == "chain"
    assert body["thinking"]["display_template"] == "drawer"
    assert UUID(body["conversation_id"])
    classic = (await user.http.post("/api/chat", json={"message": "Bonjour"})).json()
    assert classic["thinking"] is None
    assert classic["message"]["content"]


async def test_nothing_of_one_user_is_seen_by_another(user: User, user_called: Callable[[str], User]) -> None:
    done = first(await user.ask("Bonjour"), "done")
    stranger = user_called("mallory")
    assert (await stranger.get("/api/conversations"))["items"] == []
    missing = "01a22e96-e1b9-750c-8514-df90ce48ff0c"
    for path in ("", "/messages", "/tree"):
        theirs = await stranger.http.get(f"/api/conversations/{done['conversation_id']}{path}")
        nobodys = await stranger.http.get(f"/api/conversations/{missing}{path}")
        assert (theirs.status_code, theirs.content) == (nobodys.status_code, nobodys.content)
        assert theirs.status_code == 404
    asked = {"message": "Bonjour", "conversation_id": done["conversation_id"]}
    assert (await stranger.http.post("/api/chat", json=asked)).status_code == 404
    assert (await stranger.http.delete(f"/api/conversations/{done['conversation_id']}")).status_code == 404
    assert (await stranger.http.delete(f"/api/runs/{done['run_id']}")).status_code == 404
    assert (await user.http.get(f"/api/conversations/{done['conversation_id']}")).status_code == 200


async def test_a_deleted_conversation_is_gone_and_deleting_it_again_is_the_same_answer(user: User) -> None:
    done = first(await user.ask("Bonjour"), "done")
    path = f"/api/conversations/{done['conversation_id']}"
    first_time, second_time = await user.http.delete(path), await user.http.delete(path)
    assert (first_time.status_code, first_time.content) == (second_time.status_code, second_time.content) == (204, b"")
    assert (await user.http.get(path)).status_code == 404


async def test_modes_and_me_say_what_the_page_needs(user: User) -> None:
    modes = (await user.get("/api/modes"))["items"]
    assert [mode["slug"] for mode in modes] == ["conversation", "recherche", "code"]
    assert modes[0]["thinking_config"] is None
    assert modes[1]["thinking_config"]["complexity_threshold"] == 3
    me = await user.get("/api/me")
    assert (me["user"], me["subscription"], me["roles"]) == ("demo", "lintello", ["admin"])


async def test_the_answer_is_english_when_english_is_asked_for(user: User) -> None:
    response = await user.http.post(
        "/api/chat/stream",
        json={"message": "Compare three ways to fund a cooperative, with a budget and steps", "mode": "recherche"},
        headers={"Accept-Language": "en"},
    )
    assert "Taking the request apart" in response.text


async def test_a_question_of_another_origin_is_refused_in_dev_mode(user: User) -> None:
    refused = await user.http.post("/api/chat", json={"message": "Bonjour"}, headers={"Origin": "https://evil.example"})
    assert refused.status_code == 403


async def test_the_gateway_answers_ready_and_serves_its_page(user: User) -> None:
    assert (await user.get("/readyz"))["status"] == "ready"
    page: httpx.Response = await user.http.get("/")
    assert page.status_code == 200
    assert "LintellO" in page.text
