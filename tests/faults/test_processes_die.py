"""FAULTS 1, for the other processes: whichever dies, a run outlives it and each reader gets each event once."""

import asyncio

import pytest

from tests.e2e.client import HARD, first
from tests.faults.answers import ANSWER, speak_slowly, stored_answer
from tests.faults.between import gateway_behind_proxy
from tests.faults.reader import Reader, is_type, started
from tests.faults.replicas import with_one_and_two, with_one_or_slowly_two, with_two
from tests.faults.site import Site


@with_one_and_two
async def test_a_gateway_that_is_killed_costs_its_readers_nothing(site: Site) -> None:
    speak_slowly(site)
    reader, calls = site.reader(), site.trial.calls
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    asking = asyncio.create_task(reader.come_back())
    await asyncio.sleep(1)
    site.processes.kill(site.processes.replicas("gateway")[(reader.connections - 1) % len(site.gateways)])
    await asking
    assert reader.connections >= 3
    assert reader.answer == ANSWER
    assert first(reader.events, "done")["partial"] is False
    assert (await stored_answer(site, reader))["content"] == ANSWER
    assert len([call for call in calls if call.role == "synthesize"]) == 1


@with_one_or_slowly_two
async def test_a_gateway_that_is_told_to_stop_leaves_the_end_to_the_run(site: Site) -> None:
    """No gateway says `done` by itself: its readers come back, and hear the true end."""
    speak_slowly(site, seconds=9)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    asking = asyncio.create_task(reader.come_back())
    await asyncio.sleep(0.5)
    name = site.processes.replicas("gateway")[(reader.connections - 1) % len(site.gateways)]
    stopped = site.processes.terminate(name)
    await asking
    await site.processes.back(name, instead_of=stopped)
    assert reader.answer == ANSWER
    assert [event["partial"] for event in reader.events if event["type"] == "done"] == [False]


@pytest.mark.parametrize("waits", ["for a whole answer", "for the next event"])
@with_one_or_slowly_two
async def test_who_waits_at_a_gateway_that_stops_is_told_to_try_again(site: Site, waits: str) -> None:
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 9, "action": {"hang": "before"}}])
    gateway = site.gateways[0]
    if waits == "for a whole answer":
        waiting = asyncio.create_task(gateway.post("/api/chat", json={"message": "Bonjour"}))
        await site.call_of("conversation")
    else:
        reader = site.reader()
        await reader.ask("Bonjour", thinking="off", until=is_type("run_started"))
        seen = {"Last-Event-ID": str(reader.seq)}
        waiting = asyncio.create_task(gateway.get(f"/api/runs/{reader.run_id}/events", headers=seen))
        await asyncio.sleep(0.5)
    stopped = site.processes.terminate("gateway")
    answer = await waiting
    await site.processes.back("gateway", instead_of=stopped)
    assert answer.status_code == 503
    assert answer.json()["reason"] == "SHUTTING_DOWN"


@with_two
async def test_a_frozen_gateway_holds_up_nobody_who_turns_to_the_other(site: Site) -> None:
    speak_slowly(site, seconds=2)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    other = site.reader(reader.run_id, gateway=1)
    with site.processes.frozen("gateway"):
        await other.come_back()
    assert other.answer == ANSWER


@pytest.mark.parametrize("name", ["treestore", "quota"])
@with_one_or_slowly_two
async def test_a_service_that_is_killed_mid_think_costs_the_run_nothing(site: Site, name: str) -> None:
    speak_slowly(site)
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    await site.call_of("synthesize")
    killed = site.processes.kill(name)
    await asking
    await site.processes.back(name, instead_of=killed)
    assert reader.answer == ANSWER
    assert first(reader.events, "done")["partial"] is False
    assert (await stored_answer(site, reader))["content"] == ANSWER
    usage = await site.usage_of(reader.run_id)
    assert (usage.tokens, usage.partial) == (first(reader.events, "done")["tokens_used"], False)


@with_one_or_slowly_two
async def test_treestore_killed_while_a_step_runs_loses_no_node(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "execute", "nth": 2}, "times": 1, "action": {"delay_ms": 1500}}])
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=started(3))
    killed = site.processes.kill("treestore")
    await reader.come_back()
    await site.processes.back("treestore", instead_of=killed)
    conversation = first(reader.events, "run_started")["conversation_id"]
    tree = await site.user.get(f"/api/conversations/{conversation}/tree")
    assert tree["tree_data"]["nodes"] == first(reader.events, "thinking_completed")["tree_data"]["nodes"]


@with_one_or_slowly_two
async def test_a_connection_between_gateway_and_engine_that_breaks_is_taken_up_again(site: Site) -> None:
    speak_slowly(site)
    async with gateway_behind_proxy(site) as (proxy, http):
        reader = Reader([http])
        asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
        await site.call_of("synthesize")
        for break_it in (proxy.cut, proxy.reset, proxy.half_close):
            await asyncio.sleep(1)
            break_it()
        await asking
    assert reader.connections == 1, "the client had to come back, which its gateway should have done for it"
    assert reader.answer == ANSWER
    assert proxy.accepted >= 3
