"""Redis away: an answer within 200 ms, and everything as before when it is back (FAULTS 6)."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator

import grpc
import pytest

from cli.local.valkey import EmbeddedValkey
from kit.errors import RemoteError
from kit.ids import new_id
from services.quota.leases import KEY
from tests.integration.quota.client import Quota
from tests.servers.embedded import embedded_valkey
from tests.servers.identity import Keys
from tests.servers.process import running

ANSWER_SECONDS = 0.2
PATIENCE_SECONDS = 20


@pytest.fixture
async def valkey() -> AsyncIterator[EmbeddedValkey]:
    """A server of this test's own, to be stopped and killed."""
    async with embedded_valkey() as server:
        yield server


@pytest.fixture
async def quota(valkey: EmbeddedValkey, settings: dict[str, str], identity: Keys) -> AsyncIterator[Quota]:
    """The service on that server."""
    async with running("quota", {**settings, "REDIS_URL": valkey.url}) as process, Quota.at(process, identity) as quota:
        yield quota


async def test_a_stopped_redis_is_unavailable_and_then_found_again(quota: Quota, valkey: EmbeddedValkey) -> None:
    await quota.acquire()
    await valkey.stop()
    await _assert_unavailable_in_time(quota)
    await valkey.start()
    assert (await quota.acquire()).granted


async def test_a_redis_that_hangs_is_unavailable_in_time_for_everyone_who_asks(
    quota: Quota, valkey: EmbeddedValkey
) -> None:
    await quota.acquire()
    os.kill(valkey.pid, signal.SIGSTOP)
    try:
        await asyncio.gather(*(_assert_unavailable_in_time(quota) for _ in range(30)))
    finally:
        os.kill(valkey.pid, signal.SIGCONT)
    assert (await quota.acquire()).granted


async def test_the_service_starts_while_redis_is_away(
    valkey: EmbeddedValkey, settings: dict[str, str], identity: Keys
) -> None:
    await valkey.stop()
    own = {**settings, "REDIS_URL": valkey.url}
    async with running("quota", own) as process, Quota.at(process, identity) as quota:
        await _assert_unavailable_in_time(quota)
        await valkey.start()
        assert (await quota.acquire()).granted


async def test_usage_is_recorded_while_redis_is_away(quota: Quota, valkey: EmbeddedValkey) -> None:
    await quota.acquire()
    await valkey.stop()
    assert await quota.record()


async def test_a_lease_is_counted_after_redis_was_killed_or_when_it_is_renewed(
    quota: Quota, valkey: EmbeddedValkey
) -> None:
    lease_id = new_id()
    await quota.acquire(lease_id)
    killed = valkey.pid
    os.kill(killed, signal.SIGKILL)
    await _until_it_runs_again(valkey, killed)
    await quota.renew(lease_id)
    assert await quota.held() == [lease_id]


async def test_going_away_and_coming_back_is_logged_once(quota: Quota, valkey: EmbeddedValkey) -> None:
    await valkey.stop()
    for _ in range(3):
        await _assert_unavailable_in_time(quota)
    await valkey.start()
    await quota.acquire()
    await quota.process.stop()
    written = "\n".join(quota.process.lines)
    assert (written.count('"redis_away"'), written.count('"redis_back"')) == (1, 1)
    assert KEY not in written


async def _assert_unavailable_in_time(quota: Quota) -> None:
    began = time.perf_counter()
    with pytest.raises(RemoteError) as refused:
        await quota.acquire()
    took = time.perf_counter() - began
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    assert took < ANSWER_SECONDS


async def _until_it_runs_again(valkey: EmbeddedValkey, killed: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while valkey.pid == killed or not await valkey._answers():
            await asyncio.sleep(0.02)
