"""Health, metrics, the API's description and the page."""

import re

import httpx
from grpc_health.v1 import health_pb2

from tests.integration.gateway.away import away
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.scripts import CLASSIC, plays


async def test_healthz_answers(client: httpx.AsyncClient) -> None:
    assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_readyz_is_ready_when_every_service_serves(client: httpx.AsyncClient) -> None:
    assert (await client.get("/readyz")).json() == {"status": "ready", "not_ready": []}


async def test_readyz_names_a_service_that_is_away(client: httpx.AsyncClient, behind: Backend) -> None:
    async with away("quota", behind, client):
        response = await client.get("/readyz")
    assert (response.status_code, response.json()["not_ready"]) == (503, ["quota"])


async def test_readyz_names_a_service_that_says_it_is_not_serving(client: httpx.AsyncClient, behind: Backend) -> None:
    await behind.checks["engine"].set("", health_pb2.HealthCheckResponse.NOT_SERVING)
    try:
        response = await client.get("/readyz")
    finally:
        await behind.checks["engine"].set("", health_pb2.HealthCheckResponse.SERVING)
    assert (response.status_code, response.json()["not_ready"]) == (503, ["engine"])


async def test_metrics_count_requests_by_route(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    await client.post("/api/chat/stream", json={"message": "?"})
    await client.get("/made-up/1")
    text = (await client.get("/metrics")).text
    assert 'lintello_http_requests_total{method="POST",route="/api/chat/stream",status="200"}' in text
    assert 'route="unmatched",status="404"' in text
    assert "made-up" not in text


async def test_metrics_have_buckets_of_seconds(client: httpx.AsyncClient) -> None:
    text = (await client.get("/metrics")).text
    assert re.search(r'lintello_http_response_start_seconds_bucket\{le="0.2",method="GET",route="/metrics"\}', text)


async def test_the_api_describes_every_route_and_its_refusals(client: httpx.AsyncClient) -> None:
    spec = (await client.get("/openapi.json")).json()
    assert set(spec["paths"]) == {
        "/api/chat",
        "/api/chat/stream",
        "/api/runs",
        "/api/runs/{run_id}",
        "/api/runs/{run_id}/events",
        "/api/conversations",
        "/api/conversations/{conversation_id}",
        "/api/conversations/{conversation_id}/messages",
        "/api/conversations/{conversation_id}/tree",
        "/api/modes",
        "/api/me",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    operations = [operation for methods in spec["paths"].values() for operation in methods.values()]
    assert all("application/problem+json" in one["responses"]["default"]["content"] for one in operations)
    assert not any("422" in one["responses"] for one in operations)
    refusals = [response for one in operations for status, response in one["responses"].items() if status >= "400"]
    assert all(set(response["content"]) == {"application/problem+json"} for response in refusals)


async def test_the_api_describes_how_a_run_is_come_back_to(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    events = paths["/api/runs/{run_id}/events"]["get"]
    assert {(one["in"], one["name"]) for one in events["parameters"]} == {
        ("path", "run_id"),
        ("header", "Last-Event-ID"),
        ("query", "last_event_id"),
    }
    assert set(events["responses"]) == {"200", "204", "404", "409", "410", "default"}
    assert "text/event-stream" in events["responses"]["200"]["content"]
    assert events["security"] == [{"HTTPBearer": []}, {"RunToken": []}]


async def test_the_api_describes_the_key_that_makes_a_question_one(client: httpx.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    for path, success in (("/api/chat/stream", "200"), ("/api/chat", "200"), ("/api/runs", "202")):
        asking = paths[path]["post"]
        assert [(one["in"], one["name"]) for one in asking["parameters"]] == [("header", "Idempotency-Key")]
        assert {success, "409", "410"} <= set(asking["responses"])


async def test_the_page_comes_with_a_policy_that_lets_nothing_else_in(client: httpx.AsyncClient) -> None:
    response = await client.get("/")
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_every_file_the_page_needs_is_served(client: httpx.AsyncClient) -> None:
    for page in ("/", "/docs"):
        for target in re.findall(r'(?:src|href)="(/web/[^"]+)"', (await client.get(page)).text):
            assert (await client.get(target)).status_code == 200


async def test_answers_of_the_api_are_not_stored(client: httpx.AsyncClient) -> None:
    assert (await client.get("/api/me")).headers["cache-control"] == "no-store"
