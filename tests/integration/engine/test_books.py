"""The books through the real quota service, as the engine writes them."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from lintello.quota.v1.quota_pb2_grpc import QuotaServiceStub

from kit.channel import Peer
from kit.database import migrate
from kit.identity import Caller
from kit.ids import new_id
from services.engine.adapters.quota import QuotaPeer
from services.engine.domain import Details, Ending, ModelUsage
from services.engine.ports import QuotaAway, RunUsage
from services.engine.wire import run_usage_to_wire
from services.quota.tables import MIGRATIONS, SCHEMA
from tests.servers.database import new_database
from tests.servers.identity import Keys
from tests.servers.process import ServiceProcess, running

ALICE = Caller("alice", "pro")
DETAILS = Details("chain", "general", 4, "timeline", 1200, "", 0.02, node_count=2, fallbacks=1, retries=3)
USAGE = (ModelUsage("large-1", 100, 20, False), ModelUsage("small-1", 10, 2, True))


@pytest.fixture(scope="module")
async def quota_service(database_url: str, redis_url: str, identity: Keys) -> AsyncIterator[ServiceProcess]:
    """The service as it is shipped."""
    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
        settings = {"REDIS_URL": redis_url, "DATABASE_URL": url, "INTERNAL_PUBLIC_KEYS": identity.public}
        async with running("quota", settings) as process:
            yield process


@pytest.fixture
async def peer(quota_service: ServiceProcess, identity: Keys) -> AsyncIterator[Peer]:
    """The way to it."""
    peer = Peer(quota_service.address, "quota", identity.engine_signer.mint)
    yield peer
    await peer.close()


def usage(run_id: str, ending: Ending = Ending.DONE) -> RunUsage:
    return RunUsage(run_id, ending, USAGE, DETAILS, False, datetime.now(UTC))


async def is_in_the_books(peer: Peer, run: RunUsage) -> bool:
    """Found out by entering it: what is there already isn't entered."""
    answer = await peer.unary(QuotaServiceStub(peer.channel).RecordUsage, run_usage_to_wire(run), ALICE)
    return not answer.recorded


@pytest.mark.parametrize("ending", Ending)
async def test_a_run_is_in_the_books_once_it_was_entered(peer: Peer, ending: Ending) -> None:
    run = usage(new_id(), ending)
    await QuotaPeer(peer).record(run, ALICE)
    assert await is_in_the_books(peer, run)


async def test_a_run_can_be_entered_again(peer: Peer) -> None:
    run = usage(new_id())
    for _ in range(2):
        await QuotaPeer(peer).record(run, ALICE)
    assert await is_in_the_books(peer, run)


async def test_a_run_that_was_not_entered_is_not_in_the_books(peer: Peer) -> None:
    assert not await is_in_the_books(peer, usage(new_id()))


async def test_quota_that_is_away_says_so(identity: Keys) -> None:
    peer = Peer("127.0.0.1:1", "quota", identity.engine_signer.mint)
    with pytest.raises(QuotaAway):
        await QuotaPeer(peer).record(usage(new_id()), ALICE)
    await peer.close()
