"""What a replica that doesn't run a run learns of it, and what its engine learns of the user."""

import asyncio

import asyncpg
import pytest
from lintello.common.v1 import run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from tests.integration.treestore.client import Client, grow_stale, new_id, refused


async def got(client: Client, run_id: str, by: str) -> pb.GetRunResponse:
    """GetRun, by the gateway or by the engine."""
    answer: pb.GetRunResponse = await client.call("GetRun", pb.GetRunRequest(run_id=run_id), by=by)
    return answer


async def test_a_stop_is_seen_by_the_next_heartbeat(alice: Client, alice_elsewhere: Client) -> None:
    run_id = (await alice.start()).run.run_id
    before = await alice.beat(run_id)
    await alice_elsewhere.request_stop(run_id)
    assert (before, await alice.beat(run_id), await alice.beat(run_id)) == (False, True, True)


async def test_a_stop_is_for_one_run_only(alice: Client) -> None:
    stopped, other = (await alice.start()).run.run_id, (await alice.start()).run.run_id
    await alice.request_stop(stopped)
    assert await alice.beat(other) is False


async def test_asking_for_a_stop_again_or_of_a_run_that_has_ended_is_the_same_answer(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.request_stop(run_id)
    await alice.request_stop(run_id)
    ended = await alice.finish(run_id, status=run_pb2.RUN_STATUS_STOPPED)
    await alice.request_stop(run_id)
    assert await alice.run(run_id) == ended


async def test_heartbeats_say_how_far_a_run_is_and_never_go_back(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    seen = []
    for last_seq in (3, 7, 5):
        await alice.beat(run_id, last_seq)
        seen.append((await alice.run(run_id)).last_seq)
    assert seen == [3, 7, 7]


async def test_heartbeats_at_once_leave_the_furthest_number(alice: Client, alice_elsewhere: Client) -> None:
    run_id = (await alice.start()).run.run_id
    await asyncio.gather(*([alice, alice_elsewhere][number % 2].beat(run_id, number) for number in range(20, 0, -1)))
    assert (await alice.run(run_id)).last_seq == 20


@pytest.mark.parametrize(("beaten", "finished", "kept"), [(4, 9, 9), (9, 4, 9), (0, 2**40, 2**40)])
async def test_a_finish_leaves_the_furthest_number(alice: Client, beaten: int, finished: int, kept: int) -> None:
    run_id = (await alice.start()).run.run_id
    await alice.beat(run_id, beaten)
    assert (await alice.finish(run_id, last_seq=finished)).last_seq == kept


async def test_a_negative_number_is_refused(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    with pytest.raises(RemoteError) as refusal:
        await alice.beat(run_id, -1)
    assert list(refusal.value.fields) == ["last_seq"]


async def test_every_service_gets_the_same_key_for_a_runs_events_at_any_time(
    alice: Client, alice_elsewhere: Client
) -> None:
    started = await alice.start()
    during = await got(alice_elsewhere, started.run.run_id, by="engine")
    await alice.answer(started.run.run_id, "a1")
    after = await got(alice, started.run.run_id, by="engine")
    assert len(started.event_key) == 32
    assert {started.event_key, during.event_key, after.event_key} == {started.event_key}


async def test_two_runs_of_one_conversation_have_two_event_keys(alice: Client) -> None:
    first = await alice.start()
    await alice.answer(first.run.run_id, "a1")
    second = await alice.start(conversation_id=first.conversation.conversation_id)
    assert first.event_key != second.event_key


async def test_the_gateway_gets_no_event_key(alice: Client) -> None:
    run_id = (await alice.start()).run.run_id
    assert (await got(alice, run_id, by="gateway")).event_key == b""


async def test_an_answer_is_named_with_its_node(alice: Client) -> None:
    started = await alice.start()
    answer_id = await alice.answer(started.run.run_id, "a1")
    request = pb.GetTreeRequest(conversation_id=started.conversation.conversation_id)
    seen = [
        await alice.run(started.run.run_id),
        (await alice.call("GetTree", request)).runs[0],
        (await alice.runs()).runs[0],
    ]
    assert [(run.answer_id, run.answer_node_id) for run in seen] == [(answer_id, "a1")] * 3


async def test_a_run_without_an_answer_names_none(alice: Client) -> None:
    ended = await alice.finish((await alice.start()).run.run_id, status=run_pb2.RUN_STATUS_FAILED)
    assert (ended.answer_id, ended.answer_node_id) == ("", "")


async def test_the_run_that_began_last_comes_first(alice: Client) -> None:
    started = [(await alice.start()).run.run_id for _ in range(3)]
    assert [run.run_id for run in (await alice.runs()).runs] == started[::-1]


async def test_pages_show_each_run_once_and_end(alice: Client) -> None:
    started = [(await alice.start()).run.run_id for _ in range(7)]
    listed, token, pages = [], "", 0
    while pages == 0 or token:
        answer = await alice.runs(page_size=3, page_token=token)
        listed += [run.run_id for run in answer.runs]
        token, pages = answer.next_page_token, pages + 1
    assert (listed, pages) == (started[::-1], 3)


async def test_runs_of_one_conversation_are_listed_alone(alice: Client) -> None:
    started = await alice.start()
    await alice.start()
    listed = (await alice.runs(conversation_id=started.conversation.conversation_id)).runs
    assert [run.run_id for run in listed] == [started.run.run_id]


async def test_runs_that_go_on_are_listed_without_those_that_ended_or_fell_silent(
    alice: Client, sql: asyncpg.Connection
) -> None:
    ended, silent, alive = [(await alice.start()).run.run_id for _ in range(3)]
    await alice.finish(ended)
    await grow_stale(sql, silent)
    assert [run.run_id for run in (await alice.runs(active_only=True)).runs] == [alive]


async def test_nobody_sees_the_runs_of_another(alice: Client, bob: Client) -> None:
    await alice.start()
    assert len((await bob.runs()).runs) == 0


async def test_a_page_token_of_another_list_of_runs_is_refused(alice: Client) -> None:
    for _ in range(2):
        await alice.start()
    token = (await alice.runs(page_size=1)).next_page_token
    with pytest.raises(RemoteError) as refusal:
        await alice.runs(page_size=1, page_token=token, active_only=True)
    assert list(refusal.value.fields) == ["page_token"]


async def test_the_runs_of_a_conversation_that_is_not_there_are_not_found(alice: Client) -> None:
    assert await refused(alice.runs(conversation_id=new_id())) == "NOT_FOUND"
