"""`/api/runs`: beginning a run, the list, coming back to one, stopping one."""

import asyncio

import grpc
import httpx
import pytest
from lintello.common.v1 import run_pb2
from lintello.engine.v1 import engine_pb2 as pb

from kit.identity import Caller
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.process import gateway, settings_for
from tests.integration.gateway.reading import parse, read_events
from tests.integration.gateway.scripts import AT, CLASSIC, CONVERSATION, DONE, RUN, STARTED, plays
from tests.servers.identity import Keys

EVENTS = f"/api/runs/{RUN}/events"


def seqs(response: httpx.Response) -> list[int]:
    return [event["seq"] for event in parse(response.text)]


async def test_a_run_that_begins_is_202_with_its_ids_and_where_its_events_are(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(STARTED, hold=True)
    response = await client.post("/api/runs", json={"message": "?"})
    begun = response.json()
    assert response.status_code == 202
    assert (begun["run_id"], begun["conversation_id"]) == (RUN, CONVERSATION)
    assert begun["events_url"].startswith(f"{EVENTS}?token=")


async def test_a_run_that_begins_goes_on_without_its_caller(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(STARTED, hold=True)
    await client.post("/api/runs", json={"message": "?"})
    await asyncio.wait_for(behind.engine.call_ended.wait(), 5)
    assert behind.engine.asked[0][1].on_disconnect == pb.ON_DISCONNECT_CONTINUE


async def test_a_run_whose_beginning_is_lost_is_known_by_its_end(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays({"error": pb.Error(code="interrupted", retryable=True)}, DONE)
    assert (await client.post("/api/runs", json={"message": "?"})).json()["conversation_id"] == CONVERSATION


async def test_a_key_that_came_with_another_body_is_409(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED")
    behind.engine.refusing = True
    for url in ("/api/runs", "/api/chat", "/api/chat/stream"):
        response = await client.post(url, json={"message": "?"}, headers={"Idempotency-Key": "k"})
        assert (response.status_code, response.json()["reason"]) == (409, "IDEMPOTENCY_KEY_REUSED")


async def test_a_page_of_runs_has_the_shape_of_the_contract(client: httpx.AsyncClient, behind: Backend) -> None:
    going = pb.Run(run_id=RUN, conversation_id=CONVERSATION, status=run_pb2.RUN_STATUS_RUNNING, started_at=AT)
    ended = pb.Run(status=run_pb2.RUN_STATUS_PARTIAL, started_at=AT, ended_at=AT, last_seq=7)
    behind.engine.runs = pb.ListRunsResponse(runs=[going, ended], next_page_token="after")
    page = (await client.get("/api/runs")).json()
    assert page["items"][0] == {
        "run_id": RUN,
        "conversation_id": CONVERSATION,
        "status": "running",
        "started_at": "2027-01-15T08:00:00.500Z",
        "ended_at": None,
        "last_seq": 0,
    }
    assert (page["items"][1]["status"], page["items"][1]["last_seq"]) == ("partial", 7)
    assert page["items"][1]["ended_at"] == "2027-01-15T08:00:00.500Z"
    assert page["next_cursor"] == "after"


async def test_the_list_is_asked_for_as_it_was_asked_for(client: httpx.AsyncClient, behind: Backend) -> None:
    await client.get(f"/api/runs?limit=7&cursor=before&conversation_id={CONVERSATION}&status=running")
    await client.get("/api/runs")
    assert [request for _, request in behind.engine.asked] == [
        pb.ListRunsRequest(page_size=7, page_token="before", conversation_id=CONVERSATION, active_only=True),
        pb.ListRunsRequest(page_size=20),
    ]


async def test_a_status_that_is_none_of_those_to_ask_for_is_named(client: httpx.AsyncClient) -> None:
    response = await client.get("/api/runs?status=done")
    assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "status")


async def test_a_reader_without_a_number_gets_the_run_from_its_first_event(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.watched = plays(*CLASSIC)
    assert seqs(await client.get(EVENTS)) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("query", "headers"),
    [("", {"Last-Event-ID": "2"}), ("?last_event_id=2", {}), ("?last_event_id=1", {"Last-Event-ID": "2"})],
    ids=["header", "query", "the header wins"],
)
async def test_a_reader_that_comes_back_gets_what_follows(
    client: httpx.AsyncClient, behind: Backend, query: str, headers: dict[str, str]
) -> None:
    behind.engine.watched = plays(*CLASSIC)
    assert seqs(await client.get(EVENTS + query, headers=headers)) == [3, 4]


@pytest.mark.parametrize("number", ["", "x", "-1", "+1", "1.0", "1 2", "٣", "0x1", "1_0", "9" * 19])
@pytest.mark.parametrize("name", ["Last-Event-ID", "last_event_id"])
async def test_a_number_that_is_none_is_refused_by_its_name(
    client: httpx.AsyncClient, behind: Backend, number: str, name: str
) -> None:
    behind.engine.watched = plays(*CLASSIC)
    if name == "Last-Event-ID":
        response = await client.get(EVENTS, headers=[(name.encode(), number.encode())])
    else:
        response = await client.get(EVENTS, params={name: number})
    assert (response.status_code, [error["field"] for error in response.json()["errors"]]) == (400, [name])


async def test_the_largest_number_reaches_the_engine(client: httpx.AsyncClient, behind: Backend) -> None:
    await client.get(EVENTS, headers={"Last-Event-ID": "9" * 18})
    assert behind.engine.asked[0][1].after_seq == 10**18 - 1


async def test_nothing_after_the_last_event_is_204(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.watched = plays(*CLASSIC)
    response = await client.get(EVENTS, headers={"Last-Event-ID": "4"})
    assert (response.status_code, response.content) == (204, b"")


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (grpc.StatusCode.NOT_FOUND, "NOT_FOUND", 404),
        (grpc.StatusCode.OUT_OF_RANGE, "SEQUENCE_AHEAD", 409),
        (grpc.StatusCode.FAILED_PRECONDITION, "EVENTS_EXPIRED", 410),
    ],
)
async def test_a_run_that_cannot_be_read_says_why(
    client: httpx.AsyncClient, behind: Backend, code: grpc.StatusCode, reason: str, status: int
) -> None:
    behind.engine.errors.refuse(code, reason)
    behind.engine.refusing = True
    response = await client.get(EVENTS, headers={"Last-Event-ID": "9"})
    assert (response.status_code, response.json()["reason"]) == (status, reason)


async def test_a_reader_of_a_run_that_is_silent_is_let_in_all_the_same(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.watched = plays(*CLASSIC[:2], hold=True)
    async with client.stream("GET", EVENTS, headers={"Last-Event-ID": "2"}) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")


async def test_a_returning_reader_of_an_engine_that_is_coming_back_is_let_in(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    behind.engine.refusals = 3
    behind.engine.watched = plays(*CLASSIC)
    assert seqs(await client.get(EVENTS, headers={"Last-Event-ID": "1"})) == [2, 3, 4]


async def test_going_away_ends_the_call_of_a_reader(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.watched = plays(STARTED, hold=True)
    async with client.stream("GET", EVENTS) as response:
        await anext(read_events(response))
    await asyncio.wait_for(behind.engine.call_ended.wait(), 5)


async def test_readers_are_counted_while_they_are_connected(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.watched = plays(STARTED, hold=True)
    async with client.stream("GET", EVENTS) as response:
        await anext(read_events(response))
        assert "lintello_sse_streams_open 1.0" in (await client.get("/metrics")).text


async def test_sigterm_ends_a_reader_without_done(services: Backend, identity: Keys) -> None:
    services.reset()
    services.engine.watched = plays(STARTED, hold=True)
    async with gateway(settings_for(services, identity.gateway, DRAIN_SECONDS="2")) as running:
        async with running.client() as client, client.stream("GET", EVENTS) as response, asyncio.timeout(10):
            events = read_events(response)
            await anext(events)
            running.process.terminate()
            assert [event async for event in events] == []
        assert await asyncio.wait_for(running.process.wait(), 10) == 0


async def test_another_gateway_takes_over_from_one_that_is_killed(services: Backend, identity: Keys) -> None:
    services.reset()
    services.engine.script = plays(*CLASSIC[:2], hold=True)
    services.engine.watched = plays(*CLASSIC)
    settings = [settings_for(services, identity.gateway) for _ in range(2)]
    async with gateway(settings[0]) as one, gateway(settings[1]) as other:
        async with one.client() as client, client.stream("POST", "/api/chat/stream", json={"message": "?"}) as response:
            events = read_events(response)
            assert [(await anext(events))["seq"] for _ in range(2)] == [1, 2]
            one.process.kill()
            with pytest.raises(httpx.TransportError):
                await anext(events)
        async with other.client() as client:
            assert seqs(await client.get(EVENTS, headers={"Last-Event-ID": "2"})) == [3, 4]


async def test_a_run_is_watched_by_the_name_it_is_asked_for_in_its_users_name(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.watched = plays(*CLASSIC)
    await client.get(EVENTS, headers={"Last-Event-ID": "3"})
    demo = Caller("demo", "lintello", frozenset({"admin"}), actor="gateway")
    assert behind.engine.asked == [(demo, pb.WatchRunRequest(run_id=RUN, after_seq=3))]


async def test_stopping_a_run_answers_204_and_names_it(client: httpx.AsyncClient, behind: Backend) -> None:
    response = await client.delete(f"/api/runs/{RUN}")
    assert (response.status_code, behind.engine.asked[0][1].run_id) == (204, RUN)
