"""The quota service as a process on the session's Redis, and callers with every kind of token."""

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from services.quota.leases import KEY
from tests.integration.quota.client import Quota
from tests.servers.identity import Keys, keys
from tests.servers.process import running


@pytest.fixture(scope="session")
def identity() -> Keys:
    """The keys of gateway and engine."""
    return keys()


@pytest.fixture(scope="session")
async def service(redis_url: str, identity: Keys) -> AsyncIterator[Quota]:
    """The service as it is shipped: 20 slots, 30 s."""
    settings = {"REDIS_URL": redis_url, "INTERNAL_PUBLIC_KEYS": identity.public}
    async with running("quota", settings) as process, Quota.at(process, identity) as quota:
        yield quota


@pytest.fixture(scope="session")
async def hasty_service(redis_url: str, identity: Keys) -> AsyncIterator[Quota]:
    """The service with leases of half a second and two slots."""
    settings = {
        "REDIS_URL": redis_url,
        "INTERNAL_PUBLIC_KEYS": identity.public,
        "LEASE_SECONDS": "0.5",
        "MAX_THINKS_CONCURRENT": "2",
    }
    async with running("quota", settings) as process, Quota.at(process, identity) as quota:
        yield quota


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """The session's Redis, without a lease."""
    async with Redis.from_url(redis_url) as redis:
        await redis.delete(KEY)
        yield redis


@pytest.fixture
async def quota(service: Quota, redis: Redis) -> Quota:
    """The service as it is shipped, with every slot free."""
    return service


@pytest.fixture
async def hasty_quota(hasty_service: Quota, redis: Redis) -> Quota:
    """Two slots, leases of half a second, every slot free."""
    return hasty_service
