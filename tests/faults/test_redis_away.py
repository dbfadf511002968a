"""FAULTS 6: Redis is away at the start, or dies in the middle of a think.

Classic answers; a think that runs and its live readers go on; counting is unharmed.
"""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tests.e2e.client import HARD, first
from tests.faults.answers import ANSWER, speak_slowly, stored_answer
from tests.faults.reader import is_type, started
from tests.faults.replicas import with_one_or_slowly_two, with_two
from tests.faults.site import Site

HEARTBEAT_SECONDS = 5.0


async def lose(site: Site, how: str, back: AsyncExitStack) -> None:
    """Take Redis away until `back` is closed."""
    match how:
        case "refuses":
            await back.enter_async_context(site.redis.refusing())
        case "stalls":
            back.enter_context(site.redis.stalled())
        case "hangs up":
            site.redis.half_close()
            await back.enter_async_context(site.redis.refusing())
        case "freezes":
            back.enter_context(site.processes.frozen("valkey"))


HOW = pytest.mark.parametrize("how", ["refuses", "stalls", "hangs up", "freezes"])


@pytest.mark.parametrize("how", ["refuses", "stalls"])
@with_one_or_slowly_two
async def test_a_stack_that_starts_without_redis_answers_classically(site: Site, how: str) -> None:
    async with AsyncExitStack() as back:
        await lose(site, how, back)
        for name in [*site.processes.replicas("engine"), "quota"]:
            await site.processes.restart(name)
        reader = site.reader()
        await reader.ask(HARD, mode="recherche")
        done = first(reader.events, "done")
        assert (done["thinking"], done["degraded"], done["partial"]) == (False, "unavailable", False)
    await thinks_again(site)


async def thinks_again(site: Site) -> None:
    """With Redis back, questions are thought about again, without anything restarted."""
    async with asyncio.timeout(20):
        while True:
            reader = site.reader()
            await reader.ask(HARD, mode="recherche")
            if first(reader.events, "done")["thinking"]:
                return
            await asyncio.sleep(0.5)


@HOW
@with_one_or_slowly_two
async def test_a_think_and_its_live_reader_go_on_without_redis(site: Site, how: str) -> None:
    speak_slowly(site, seconds=2)
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    async with AsyncExitStack() as back:
        await site.call_of("synthesize")
        await lose(site, how, back)
        await asking
        assert reader.connections == 1
        assert reader.answer == ANSWER
        assert first(reader.events, "done")["partial"] is False
        usage = await site.usage_of(reader.run_id)
        assert usage.tokens == first(reader.events, "done")["tokens_used"]
    assert (await stored_answer(site, reader))["content"] == ANSWER


@with_one_or_slowly_two
async def test_what_was_said_while_redis_was_away_can_be_read_at_every_gateway_afterwards(site: Site) -> None:
    speak_slowly(site, seconds=2)
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    await site.call_of("synthesize")
    async with site.redis.refusing():
        await asking
        await asyncio.sleep(1)
    for number in range(2 * len(site.gateways)):
        again = site.reader(reader.run_id, gateway=number % len(site.gateways))
        async with asyncio.timeout(30):
            await again.come_back()
        assert again.events == reader.events


@with_one_or_slowly_two
async def test_valkey_killed_mid_think_loses_no_event_and_no_slot(site: Site) -> None:
    speak_slowly(site, seconds=3)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    killed = site.processes.kill("valkey")
    asking = asyncio.create_task(reader.come_back())
    await site.processes.back("valkey", instead_of=killed)
    await asking
    assert reader.answer == ANSWER
    async with asyncio.timeout(30):
        while await site.holds_slot(reader.run_id):
            await asyncio.sleep(0.2)


@with_one_or_slowly_two
async def test_a_run_can_be_stopped_while_redis_is_away(site: Site) -> None:
    """Asked of another engine, the stop arrives with the next heartbeat of the run's own."""
    site.trial.set_faults([{"match": {"role": "execute", "nth": 2}, "times": 1, "action": {"delay_ms": 15_000}}])
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=started(3))
    call = await site.call_of("execute", 2)
    async with site.redis.refusing():
        for gateway in site.gateways:
            assert (await gateway.delete(f"/api/runs/{reader.run_id}")).status_code == 204
        async with asyncio.timeout(HEARTBEAT_SECONDS + 3):
            while call.ended_at is None:
                await asyncio.sleep(0.05)
    await reader.come_back()
    assert first(reader.events, "done")["partial"] is True


@pytest.mark.slow
@with_two
async def test_a_reader_elsewhere_waits_for_redis_and_misses_nothing(site: Site) -> None:
    speak_slowly(site, seconds=6)
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    await site.call_of("synthesize")
    others = [site.reader(reader.run_id, gateway=number % 2) for number in range(4)]
    reading = [asyncio.create_task(other.come_back()) for other in others]
    await asyncio.sleep(1)
    async with site.redis.refusing():
        await asyncio.sleep(3)
    await asyncio.gather(asking, *reading)
    assert all(other.events == reader.events for other in others)
