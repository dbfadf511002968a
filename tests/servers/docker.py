"""PostgreSQL and Redis in containers, where Docker answers."""

import asyncio
import gc
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PATIENCE_SECONDS = 3


def docker_answers() -> bool:
    """Whether there is a Docker that can be used; asked for at most a few seconds."""
    with warnings.catch_warnings():
        # The client leaves its socket to the collector when nobody answers.
        warnings.simplefilter("ignore", ResourceWarning)
        answers = _ping()
        gc.collect()
    return answers


def _ping() -> bool:
    import docker.errors  # type: ignore[import-untyped]

    try:
        docker.from_env(timeout=PATIENCE_SECONDS).close()
    except docker.errors.DockerException:
        return False
    return True


@asynccontextmanager
async def postgres_container() -> AsyncIterator[str]:
    """The URL of a PostgreSQL that is gone afterwards."""
    from testcontainers.community.postgres import PostgresContainer

    container = PostgresContainer("postgres:18-alpine", driver=None)
    await asyncio.to_thread(container.start)
    try:
        yield container.get_connection_url()
    finally:
        await asyncio.to_thread(container.stop)


@asynccontextmanager
async def redis_container() -> AsyncIterator[str]:
    """The URL of a Redis that is gone afterwards."""
    from testcontainers.community.redis import RedisContainer

    container = RedisContainer("redis:8-alpine")
    await asyncio.to_thread(container.start)
    try:
        yield f"redis://{container.get_container_host_ip()}:{container.get_exposed_port(6379)}"
    finally:
        await asyncio.to_thread(container.stop)
