"""`POST /api/chat`: an answer in one piece, or why there is none."""

import asyncio

import grpc
import httpx
from lintello.engine.v1 import engine_pb2 as pb

from tests.integration.gateway.backend import Backend
from tests.integration.gateway.process import gateway, settings_for
from tests.integration.gateway.scripts import ANSWER, CLASSIC, CONVERSATION, RUN, STARTED, THINK, plays
from tests.servers.identity import Keys


async def test_an_answer_whole_gathers_its_pieces(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    assert (await client.post("/api/chat", json={"message": "?"})).json() == {
        "message": {"id": ANSWER, "role": "assistant", "content": "Bonjour."},
        "thinking": None,
        "sources": [],
        "notices": [],
        "conversation_id": CONVERSATION,
        "run_id": RUN,
        "node_id": "a",
        "model": "m-1",
        "tokens_used": 7,
        "cost_eur": 0.0,
        "partial": False,
        "degraded": None,
    }


async def test_an_answer_whole_carries_its_thinking(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*THINK)
    thinking = (await client.post("/api/chat", json={"message": "?"})).json()["thinking"]
    tree = thinking.pop("tree_data")
    assert tree["nodes"][0]["children"][0]["id"] == "s"
    assert thinking == {
        "schema": "chain",
        "tokens_used": 7,
        "duration_ms": 1200,
        "display_template": "drawer",
        "partial": False,
    }


async def test_a_run_without_an_answer_is_a_problem(client: httpx.AsyncClient, behind: Backend) -> None:
    error = {"error": pb.Error(code="unavailable", message="…", retryable=True)}
    behind.engine.script = plays(STARTED, error, {"done": pb.Done(conversation_id=CONVERSATION, partial=True)})
    response = await client.post("/api/chat", json={"message": "?"})
    assert (response.status_code, response.json()["reason"]) == (503, "UNAVAILABLE")


async def test_a_call_that_breaks_costs_the_answer_nothing(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    behind.engine.script = plays(*CLASSIC[:2], broken=True)
    behind.engine.watched = plays(*CLASSIC)
    answer = (await client.post("/api/chat", json={"message": "?"})).json()
    assert (answer["message"]["content"], answer["partial"]) == ("Bonjour.", False)


async def test_a_run_whose_engine_died_before_it_said_anything_is_503_with_the_run(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    error = {"error": pb.Error(code="interrupted", message="…", retryable=True)}
    behind.engine.script = plays(STARTED, error, {"done": pb.Done(conversation_id=CONVERSATION, partial=True)})
    response = await client.post("/api/chat", json={"message": "?"})
    assert (response.status_code, response.json()["run_id"]) == (503, RUN)


async def test_a_run_that_was_deleted_while_its_call_was_broken_is_404(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(*CLASSIC[:2])
    response = await client.post("/api/chat", json={"message": "?"})
    assert (response.status_code, response.json()["run_id"]) == (404, RUN)


async def test_a_gateway_that_stops_answers_503_with_the_run(services: Backend, identity: Keys) -> None:
    services.reset()
    services.engine.script = plays(STARTED, hold=True)
    async with gateway(settings_for(services, identity.gateway, DRAIN_SECONDS="2")) as running:
        async with running.client() as client, asyncio.timeout(20):
            asking = asyncio.create_task(client.post("/api/chat", json={"message": "?"}))
            while not services.engine.asked:
                await asyncio.sleep(0.05)
            running.process.terminate()
            response = await asking
        assert (response.status_code, response.json()["reason"]) == (503, "SHUTTING_DOWN")
        assert response.json()["run_id"] == RUN
