"""The quota service as a process on the session's Redis and a database of its own, and callers with any token."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from kit.database import migrate
from services.quota.leases import KEY
from services.quota.tables import MIGRATIONS, SCHEMA
from tests.integration.quota.client import Quota
from tests.servers.database import new_database
from tests.servers.identity import Keys, keys
from tests.servers.process import running


@pytest.fixture(scope="session")
def identity() -> Keys:
    """The keys of gateway and engine."""
    return keys()


@pytest.fixture(scope="session")
async def books_url(database_url: str) -> AsyncIterator[str]:
    """A database with the books in it."""
    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
        yield url


@pytest.fixture(scope="session")
def settings(redis_url: str, books_url: str, identity: Keys) -> dict[str, str]:
    """The least that the service needs."""
    return {"REDIS_URL": redis_url, "DATABASE_URL": books_url, "INTERNAL_PUBLIC_KEYS": identity.public}


@pytest.fixture(scope="session")
async def service(settings: dict[str, str], identity: Keys) -> AsyncIterator[Quota]:
    """The service as it is shipped: 20 slots, 30 s."""
    async with running("quota", settings) as process, Quota.at(process, identity) as quota:
        yield quota


@pytest.fixture(scope="session")
async def hasty_service(settings: dict[str, str], identity: Keys) -> AsyncIterator[Quota]:
    """The service with leases of half a second and two slots."""
    hasty = {**settings, "LEASE_SECONDS": "0.5", "MAX_THINKS_CONCURRENT": "2"}
    async with running("quota", hasty) as process, Quota.at(process, identity) as quota:
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
