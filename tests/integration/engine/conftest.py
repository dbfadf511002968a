"""The session's Redis and PostgreSQL, and the replay log of a new run at two processes."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from cli.local.valkey import EmbeddedValkey
from kit.database import migrate
from kit.ids import new_id
from services.engine.adapters.replay import RedisReplay
from services.treestore.tables import MIGRATIONS, SCHEMA
from tests.integration.engine.log import Log
from tests.servers.database import new_database
from tests.servers.embedded import embedded_valkey
from tests.servers.identity import Keys, keys
from tests.servers.process import ServiceProcess, running


@pytest.fixture
async def writer(redis_url: str) -> AsyncIterator[Log]:
    """A new run's log, at the process that runs it."""
    replay = RedisReplay(redis_url)
    yield Log(replay, new_id(), secrets.token_bytes(32))
    await replay.close()


@pytest.fixture
async def other(writer: Log, redis_url: str) -> AsyncIterator[Log]:
    """The same log at another process."""
    replay = RedisReplay(redis_url)
    yield Log(replay, writer.run_id, writer.key)
    await replay.close()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    """The server itself."""
    async with Redis.from_url(redis_url) as redis:
        yield redis


@pytest.fixture
async def valkey() -> AsyncIterator[EmbeddedValkey]:
    """A server of this test's own, to be stopped and killed."""
    async with embedded_valkey() as server:
        yield server


@pytest.fixture(scope="session")
def identity() -> Keys:
    """The keys of gateway and engine."""
    return keys()


@pytest.fixture(scope="session")
def encryption_keys() -> str:
    """Treestore's."""
    return f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}"


@pytest.fixture(scope="session")
async def treestore_database(database_url: str) -> AsyncIterator[str]:
    """A database with treestore's tables."""
    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
        yield url


@pytest.fixture(scope="session")
async def treestore(treestore_database: str, encryption_keys: str, identity: Keys) -> AsyncIterator[ServiceProcess]:
    """The service as it is shipped."""
    settings = {
        "DATABASE_URL": treestore_database,
        "ENCRYPTION_KEYS": encryption_keys,
        "INTERNAL_PUBLIC_KEYS": identity.public,
    }
    async with running("treestore", settings) as process:
        yield process
