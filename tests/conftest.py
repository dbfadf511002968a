"""What every test may ask for: a database and a Redis of this session's own.

Where they come from: the URLs given in LINTELLO_TEST_DATABASE_URL and LINTELLO_TEST_REDIS_URL; else containers, where
Docker answers; else the embedded servers.
"""

import functools
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest
from redis.asyncio import Redis

from tests.servers.docker import docker_answers, postgres_container, redis_container
from tests.servers.embedded import embedded_postgres, embedded_valkey

# A setting in the shell that runs the tests must not change what they see, in this process or in one they start.
GIVEN = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("LINTELLO_")}

use_docker = functools.cache(docker_answers)


@pytest.fixture(scope="session")
async def database_url() -> AsyncIterator[str]:
    """`postgresql://…` of a database made for this session and dropped after it."""
    async with AsyncExitStack() as stack:
        server = GIVEN.get("LINTELLO_TEST_DATABASE_URL")
        if server is None and use_docker():
            server = await stack.enter_async_context(postgres_container())
        elif server is None:
            server = (await stack.enter_async_context(embedded_postgres())).url
        name = f"lintello_test_{secrets.token_hex(8)}"
        await _execute(server, f'CREATE DATABASE "{name}"')
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            await _execute(server, f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(scope="session")
async def redis_url() -> AsyncIterator[str]:
    """`redis://…` or `unix://…` of a key space in which nobody else writes. On a given server: an empty database."""
    async with AsyncExitStack() as stack:
        given = GIVEN.get("LINTELLO_TEST_REDIS_URL")
        if given is not None:
            url = await _empty_database(given)
            yield url
            async with Redis.from_url(url) as redis:
                await redis.delete(*[key async for key in redis.scan_iter("lintello:*")], CLAIM)
        elif use_docker():
            yield await stack.enter_async_context(redis_container())
        else:
            yield (await stack.enter_async_context(embedded_valkey())).url


CLAIM = "lintello-tests"


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


async def _empty_database(server: str) -> str:
    """The URL of the first database of the server that holds nothing, claimed for this session."""
    for number in range(16):
        url = urlunsplit(urlsplit(server)._replace(query=f"db={number}"))
        async with Redis.from_url(url) as redis:
            if await redis.dbsize() == 0 and await redis.set(CLAIM, "", nx=True, ex=3600):
                return url
    raise pytest.UsageError("LINTELLO_TEST_REDIS_URL: each of its 16 databases has keys in it; give an empty server")
