"""PostgreSQL away: leases go on, usage is refused in time, and recorded once it is back (FAULTS 6, 7)."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import grpc
import psutil
import pytest
from redis.asyncio import Redis

from cli.local.ports import free_port
from cli.local.postgres import EmbeddedPostgres
from kit.database import migrate
from kit.errors import RemoteError
from kit.ids import new_id
from services.quota.tables import MIGRATIONS, SCHEMA
from tests.integration.quota.client import Quota, usage_request
from tests.servers.embedded import embedded_postgres
from tests.servers.identity import Keys
from tests.servers.process import running

ANSWER_SECONDS = 5
"""What callers wait for."""
STOP_SECONDS = 10
PATIENCE_SECONDS = 30


@pytest.fixture(scope="module")
async def postgres() -> AsyncIterator[EmbeddedPostgres]:
    """A server of these tests' own, to be frozen and killed."""
    async with embedded_postgres() as server:
        await asyncio.to_thread(migrate, server.url, MIGRATIONS, SCHEMA)
        yield server


@pytest.fixture
async def quota(postgres: EmbeddedPostgres, settings: dict[str, str], identity: Keys) -> AsyncIterator[Quota]:
    """The service on that server."""
    own = {**settings, "DATABASE_URL": postgres.url, "DRAIN_SECONDS": "0"}
    async with running("quota", own) as process, Quota.at(process, identity) as quota:
        yield quota


async def test_it_starts_and_gives_leases_where_there_is_no_postgresql(
    settings: dict[str, str], identity: Keys, redis: Redis
) -> None:
    own = {**settings, "DATABASE_URL": f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere"}
    async with running("quota", own) as process, Quota.at(process, identity) as quota:
        assert (await quota.acquire()).granted
        await _assert_unavailable(quota)


async def test_a_postgresql_that_hangs_is_unavailable_in_time_and_then_found_again(
    quota: Quota, postgres: EmbeddedPostgres
) -> None:
    await quota.record()
    with _frozen(postgres):
        async with asyncio.timeout(ANSWER_SECONDS):
            await asyncio.gather(*(_assert_unavailable(quota) for _ in range(10)))
        await quota.renew(new_id())
    await _until_recorded(quota)


async def test_it_ends_in_time_while_postgresql_hangs(quota: Quota, postgres: EmbeddedPostgres) -> None:
    await quota.record()
    with _frozen(postgres):
        await _assert_unavailable(quota)
        async with asyncio.timeout(STOP_SECONDS):
            assert await quota.process.stop() == 0


async def test_a_postgresql_that_was_killed_is_found_again_and_a_run_is_recorded_once(
    quota: Quota, postgres: EmbeddedPostgres
) -> None:
    request = usage_request()
    assert await quota.record(request)
    os.kill(postgres.pid, signal.SIGKILL)
    await _until_recorded(quota)
    assert not await quota.record(request)


async def _assert_unavailable(quota: Quota) -> None:
    with pytest.raises(RemoteError) as refused:
        await quota.record()
    error = refused.value
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    assert error.message == "the books can't be reached"


async def _until_recorded(quota: Quota) -> None:
    """Repeat one record as its caller would; every refusal on the way is UNAVAILABLE."""
    request = usage_request()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await quota.record(request)
            except RemoteError as error:
                if error.reason != "UNAVAILABLE":
                    raise
                await asyncio.sleep(0.1)
            else:
                return


@contextmanager
def _frozen(postgres: EmbeddedPostgres) -> Iterator[None]:
    """The server and the processes of its connections do nothing."""
    server = psutil.Process(postgres.pid)
    pids = [server.pid, *(child.pid for child in server.children())]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
