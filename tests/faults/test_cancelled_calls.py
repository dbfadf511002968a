"""FAULTS 17: 500 cancelled model calls in a row; the next 100 succeed, no connection is lost to anybody."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from cli.trial.ledger import Call
from tests.e2e.client import first
from tests.faults.replicas import with_one_and_two
from tests.faults.site import Site

CANCELLED = 500
AT_ONCE = 25
AFTERWARDS = 100
BRIEFLY_SECONDS = 10.0
DATABASE_CONNECTIONS = 2 * 10
"""What the pool of one service process may open under load (kit.database)."""


async def in_turns(count: int, site: Site, one: Callable[[Site, int], Awaitable[None]]) -> None:
    """`count` of them, so many at once."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def turn(number: int) -> None:
        async with turns:
            await one(site, number)

    await asyncio.gather(*(turn(number) for number in range(count)))


@pytest.mark.slow
@pytest.mark.timeout(300)
@with_one_and_two
async def test_five_hundred_cancelled_calls_leave_the_next_hundred_unharmed(site: Site) -> None:
    hangs = [{"match": {}, "times": CANCELLED // 2, "action": {"hang": how}} for how in ("before", "middle")]
    site.trial.set_faults(hangs)
    await in_turns(CANCELLED, site, ask_and_stop)
    assert len(site.trial.calls) == CANCELLED
    async with asyncio.timeout(5):
        while any(call.ended_at is None for call in site.trial.calls):
            await asyncio.sleep(0.05)
    assert all(call.aborted for call in site.trial.calls)
    site.trial.reset()
    await in_turns(AFTERWARDS, site, ask_and_be_answered)
    assert site.trial.connections <= 2 * AT_ONCE
    services = [*site.processes.replicas("treestore"), *site.processes.replicas("quota")]
    assert await site.database_connections() <= DATABASE_CONNECTIONS * len(services)
    async with asyncio.timeout(BRIEFLY_SECONDS):
        # One that is between two statements is no leak; one that stays so is.
        while await site.sql("SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"):
            await asyncio.sleep(0.05)


async def ask_and_stop(site: Site, number: int) -> None:
    """Ask, wait until the model is being asked, stop."""
    reader = site.reader(gateway=number % len(site.gateways))
    asking = asyncio.create_task(reader.ask(f"Question {number:05}", thinking="off"))
    async with asyncio.timeout(30):
        while not reader.run_id or not any(asks(call, number) for call in site.trial.calls[-2 * AT_ONCE :]):
            await asyncio.sleep(0.02)
    assert (await site.gateways[0].delete(f"/api/runs/{reader.run_id}")).status_code == 204
    await asking
    assert first(reader.events, "done")["partial"] is True


def asks(call: Call, number: int) -> bool:
    """Whether a call was made for this question."""
    return bool(call.body["messages"][-1]["content"] == f"Question {number:05}")


async def ask_and_be_answered(site: Site, number: int) -> None:
    """Ask, and get a whole answer."""
    reader = site.reader(gateway=number % len(site.gateways))
    await reader.ask(f"Encore {number:05}", thinking="off")
    assert first(reader.events, "done")["partial"] is False
