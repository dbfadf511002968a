"""FAULTS 32: a run's events asked for by another user are as those of a run that isn't; from the future, refused."""

import grpc
import httpx
import pytest
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceStub

from kit.errors import from_rpc
from kit.identity import Caller
from kit.ids import new_id
from tests.faults.reader import Reader, is_type
from tests.faults.replicas import with_one_and_two
from tests.faults.site import Site

MALLORY = Caller(user="mallory", subscription="pro")


async def a_run(site: Site, state: str) -> Reader:
    """A run that goes on and will till it is stopped, or one that has ended."""
    reader = site.reader()
    if state == "ended":
        await reader.ask("Bonjour", thinking="off")
    else:
        site.trial.set_faults([{"match": {}, "times": 1, "action": {"hang": "before"}}])
        await reader.ask("Bonjour", thinking="off", until=is_type("run_started"))
    return reader


def plain(response: httpx.Response) -> tuple[int, bytes, str]:
    """What a stranger could tell two answers apart by."""
    return response.status_code, response.content, response.headers["content-type"]


@pytest.mark.parametrize("state", ["running", "ended"])
@with_one_and_two
async def test_another_users_run_is_answered_as_one_that_does_not_exist(site: Site, state: str) -> None:
    reader = await a_run(site, state)
    unknown = new_id()
    async with site.user_called("mallory") as mallory:
        for _ in range(2 * len(site.gateways)):
            for method, path in (("GET", "/events"), ("DELETE", "")):
                theirs = await mallory.http.request(method, f"/api/runs/{reader.run_id}{path}")
                nobodys = await mallory.http.request(method, f"/api/runs/{unknown}{path}")
                assert plain(theirs) == plain(nobodys)
                assert theirs.status_code == 404
        assert (await mallory.get("/api/runs"))["items"] == []
    (run,) = (await site.user.get("/api/runs", conversation_id=reader.events[0]["conversation_id"]))["items"]
    assert run["status"] == ("running" if state == "running" else "done"), "a stranger stopped it"


@pytest.mark.parametrize("state", ["running", "ended"])
@with_one_and_two
async def test_so_it_is_on_every_engine_by_grpc(site: Site, state: str) -> None:
    reader = await a_run(site, state)
    for address in site.stack.grpc_addresses("engine"):
        told = []
        for run_id in (reader.run_id, new_id()):
            async with grpc.aio.insecure_channel(address) as channel:
                request = pb.WatchRunRequest(run_id=run_id)
                watching = EngineServiceStub(channel).WatchRun(request, metadata=site.metadata("engine", MALLORY))
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await anext(aiter(watching))
            error = from_rpc(refused.value)
            told.append((refused.value.code(), refused.value.details(), error.reason))
        assert told[0] == told[1]
        assert told[0][0] is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("state", ["running", "ended"])
@with_one_and_two
async def test_an_event_from_the_future_is_refused(site: Site, state: str) -> None:
    reader = await a_run(site, state)
    future = {"Last-Event-ID": str(reader.seq + 1000)}
    for gateway in site.gateways * 2:
        refused = await gateway.get(f"/api/runs/{reader.run_id}/events", headers=future)
        assert (refused.status_code, refused.json()["reason"]) == (409, "SEQUENCE_AHEAD")


@with_one_and_two
async def test_the_token_of_one_run_opens_no_other_and_nothing_else(site: Site) -> None:
    begun = (await site.gateways[0].post("/api/runs", json={"message": "Bonjour"})).json()
    other = (await site.gateways[0].post("/api/runs", json={"message": "Bonsoir"})).json()
    for answer in (begun, other):
        await site.reader(answer["run_id"]).come_back()
    token = {"token": httpx.URL(begun["events_url"]).params["token"]}
    async with site.user_called("mallory") as mallory:
        for path in (f"/api/runs/{other['run_id']}/events", f"/api/conversations/{begun['conversation_id']}"):
            assert (await mallory.http.get(path, params=token)).status_code in (401, 403, 404)
        assert (await mallory.http.get("/api/runs", params=token)).json().get("items", []) == []


@with_one_and_two
async def test_nothing_after_the_last_event_ends_a_reader_that_comes_back_by_itself(site: Site) -> None:
    """What `EventSource` needs: 204 stops it from coming back for ever."""
    reader = await a_run(site, "ended")
    for gateway in site.gateways * 2:
        answer = await gateway.get(f"/api/runs/{reader.run_id}/events", headers={"Last-Event-ID": str(reader.seq)})
        assert (answer.status_code, answer.content) == (204, b"")
