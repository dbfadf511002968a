"""`POST /api/chat/stream`: events as they happen."""

import asyncio
import json
from collections.abc import AsyncGenerator

import grpc
import httpx
from lintello.engine.v1 import engine_pb2 as pb

from tests.integration.gateway.away import away
from tests.integration.gateway.backend import Backend
from tests.integration.gateway.process import gateway, settings_for
from tests.integration.gateway.reading import parse, read_events
from tests.integration.gateway.scripts import (
    ANSWER,
    CLASSIC,
    CONVERSATION,
    QUESTION,
    RUN,
    STARTED,
    THINK,
    numbered,
    plays,
)
from tests.servers.identity import Keys

URL = "/api/chat/stream"
FLOOD = 10_000


class Flood:
    """A run with 40 MB to say."""

    def __init__(self) -> None:
        self.sent = 0

    async def script(self, _: object) -> AsyncGenerator[pb.ThinkingEvent, None]:
        for event in numbered([STARTED, *([{"content": pb.Content(content="x" * 4096)}] * FLOOD)]):
            yield event
            self.sent += 1


async def test_a_classic_run_is_told_in_order_without_gaps(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    events = parse((await client.post(URL, json={"message": "?"})).text)
    assert [event["type"] for event in events] == ["run_started", "content", "content", "done"]
    assert [event["seq"] for event in events] == [1, 2, 3, 4]


async def test_run_started_has_the_fields_of_the_contract(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    first = parse((await client.post(URL, json={"message": "?"})).text)[0]
    assert first == {
        "type": "run_started",
        "run_id": RUN,
        "seq": 1,
        "at": "2027-01-15T08:00:00.500Z",
        "conversation_id": CONVERSATION,
        "message_id": QUESTION,
        "parent_node_id": None,
    }


async def test_done_says_null_where_nothing_was_degraded(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    done = parse((await client.post(URL, json={"message": "?"})).text)[-1]
    assert done == {
        "type": "done",
        "run_id": RUN,
        "seq": 4,
        "at": "2027-01-15T08:00:00.500Z",
        "conversation_id": CONVERSATION,
        "message_id": ANSWER,
        "node_id": "a",
        "model": "m-1",
        "tokens_used": 7,
        "cost_eur": 0.0,
        "thinking": False,
        "partial": False,
        "degraded": None,
    }


async def test_a_think_carries_its_tree_nested(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*THINK)
    events = parse((await client.post(URL, json={"message": "?"})).text)
    tree = events[-2]["tree_data"]
    assert [node["id"] for node in tree["nodes"]] == ["d"]
    assert [node["id"] for node in tree["nodes"][0]["children"]] == ["s"]
    assert tree["runs"][RUN]["schema"] == "chain"


async def test_the_headers_forbid_storing_and_buffering(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    headers = (await client.post(URL, json={"message": "?"})).headers
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store"
    assert headers["x-accel-buffering"] == "no"


async def test_an_event_arrives_while_the_run_goes_on(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(STARTED, hold=True)
    async with client.stream("POST", URL, json={"message": "?"}) as response, asyncio.timeout(5):
        assert (await anext(read_events(response)))["type"] == "run_started"


async def test_going_away_ends_the_call_and_leaves_the_run_to_the_engine(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(STARTED, hold=True)
    async with client.stream("POST", URL, json={"message": "?"}) as response:
        await anext(read_events(response))
    await asyncio.wait_for(behind.engine.call_ended.wait(), 5)
    assert behind.engine.asked[0][1].on_disconnect == pb.ON_DISCONNECT_CONTINUE


async def test_a_refusal_before_the_first_event_is_a_problem_with_its_status(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.FAILED_PRECONDITION, "RUN_IN_PROGRESS")
    behind.engine.refusing = True
    response = await client.post(URL, json={"message": "?"})
    assert (response.status_code, response.json()["reason"]) == (409, "RUN_IN_PROGRESS")


async def test_line_separators_in_a_text_break_no_reader_that_splits_at_them(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    text = "a\u2028b\u2029c\x85d\ne\r\nf\x0bg"
    behind.engine.script = plays(STARTED, {"content": pb.Content(content=text)}, CLASSIC[-1])
    async with client.stream("POST", URL, json={"message": "?"}) as response:
        lines = [line async for line in response.aiter_lines() if line.startswith("data: ")]
    assert json.loads(lines[1].removeprefix("data: "))["content"] == text


async def test_a_call_that_breaks_is_taken_up_where_it_was(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    behind.engine.script = plays(*THINK[:4], broken=True)
    behind.engine.watched = plays(*THINK)
    events = parse((await client.post(URL, json={"message": "?"})).text)
    assert [event["seq"] for event in events] == [1, 2, 3, 4, 5, 6, 7]
    assert behind.engine.asked[-1][1] == pb.WatchRunRequest(run_id=RUN, after_seq=4)


async def test_a_call_that_ends_without_done_is_taken_up_where_it_was(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(*CLASSIC[:2])
    behind.engine.watched = plays(*CLASSIC)
    events = parse((await client.post(URL, json={"message": "?"})).text)
    assert [event["seq"] for event in events] == [1, 2, 3, 4]


async def test_a_run_is_watched_in_the_name_of_the_user_who_asked(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC[:2])
    behind.engine.watched = plays(*CLASSIC)
    await client.post(URL, json={"message": "?"})
    asked, watched = (caller for caller, _ in behind.engine.asked)
    assert watched == asked


async def test_a_reader_of_an_engine_that_restarts_notices_nothing(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC[:2], hold=True)
    behind.engine.watched = plays(*CLASSIC)
    async with client.stream("POST", URL, json={"message": "?"}) as response, asyncio.timeout(20):
        events = read_events(response)
        seen = [await anext(events)]
        async with away("engine", behind, client):
            pass
        seen += [event async for event in events]
    assert [event["seq"] for event in seen] == [1, 2, 3, 4]


async def test_a_run_deleted_while_its_call_was_broken_ends_the_stream_without_a_made_up_event(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.script = plays(*CLASSIC[:2])
    response = await client.post(URL, json={"message": "?"})
    assert [event["type"] for event in parse(response.text)] == ["run_started", "content"]
    assert (await client.get(f"/api/runs/{RUN}/events", headers={"Last-Event-ID": "2"})).status_code == 404


async def test_a_question_that_an_engine_lost_before_its_first_event_is_asked_again_as_the_same_one(
    client: httpx.AsyncClient, behind: Backend
) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
    behind.engine.refusals = 2
    behind.engine.script = plays(*CLASSIC)
    assert (await client.post(URL, json={"message": "?"})).status_code == 200
    keys = [request.idempotency_key for _, request in behind.engine.asked]
    assert (len(keys), len(set(keys)), keys[0] != "") == (3, 1, True)


async def test_two_questions_without_a_key_are_two(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.script = plays(*CLASSIC)
    for _ in range(2):
        await client.post(URL, json={"message": "?"})
    assert len({request.idempotency_key for _, request in behind.engine.asked}) == 2


async def test_a_question_that_no_engine_takes_is_a_503(client: httpx.AsyncClient, behind: Backend) -> None:
    behind.engine.errors.refuse(grpc.StatusCode.UNAVAILABLE, "SHUTTING_DOWN")
    behind.engine.refusing = True
    response = await client.post(URL, json={"message": "?"})
    assert (response.status_code, response.json()["reason"]) == (503, "SHUTTING_DOWN")
    assert int(response.headers["retry-after"]) > 0


async def test_a_reader_that_stalls_holds_the_engine_back(client: httpx.AsyncClient, behind: Backend) -> None:
    flood = Flood()
    behind.engine.script = flood.script
    async with client.stream("POST", URL, json={"message": "?"}) as response:
        await anext(read_events(response))
        before = -1
        while flood.sent != before:
            before = flood.sent
            await asyncio.sleep(0.5)
    assert flood.sent < FLOOD


async def test_sigterm_ends_open_streams_in_time_and_without_done(services: Backend, identity: Keys) -> None:
    services.reset()
    services.engine.script = plays(STARTED, hold=True)
    async with gateway(settings_for(services, identity.gateway, DRAIN_SECONDS="2")) as running:
        async with running.client() as client, client.stream("POST", URL, json={"message": "?"}) as response:
            events = read_events(response)
            await anext(events)
            running.process.terminate()
            async with asyncio.timeout(10):
                rest = [event["type"] async for event in events]
        assert rest == []
        assert await asyncio.wait_for(running.process.wait(), 10) == 0
