"""`lintello migrate` on a real database."""

import asyncio
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.integration.cli.command import lintello


def settings(url: str) -> dict[str, str]:
    return {"LINTELLO_DATABASE_URL": url}


async def tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        rows = await connection.fetch(
            "SELECT schemaname || '.' || tablename FROM pg_tables WHERE schemaname IN ('quota', 'treestore')"
        )
    finally:
        await connection.close()
    return {row[0] for row in rows}


@pytest.fixture(autouse=True)
async def _as_it_was(database_url: str) -> None:
    await lintello("migrate", "--to", "base", settings=settings(database_url))


async def test_every_owner_is_told_in_one_line(database_url: str) -> None:
    ended = await lintello("migrate", settings=settings(database_url))
    assert (ended.code, ended.output, ended.errors) == (0, "quota : à jour\ntreestore : à jour\n", "")
    assert {"quota.usage_log", "treestore.conversation", "treestore.run"} <= await tables(database_url)


async def test_two_at_once_take_turns(database_url: str) -> None:
    both = await asyncio.gather(*(lintello("migrate", settings=settings(database_url)) for _ in range(2)))
    assert [ended.code for ended in both] == [0, 0]


async def test_base_removes_the_tables(database_url: str) -> None:
    await lintello("migrate", settings=settings(database_url))
    ended = await lintello("migrate", "--to", "base", settings=settings(database_url))
    assert (ended.code, ended.output) == (0, "quota : retiré\ntreestore : retiré\n")
    assert await tables(database_url) == {"quota.alembic_version", "treestore.alembic_version"}


async def test_no_address_is_wrong_usage() -> None:
    ended = await lintello("migrate")
    assert (ended.code, ended.errors) == (2, "LINTELLO_DATABASE_URL : manque\n")


@pytest.mark.parametrize("url", ["mysql://x/y", "postgresql://[", "postgresql://u:s3cret@h:port/x", "postgresql:///x"])
async def test_what_is_no_address_of_ours_is_wrong_usage(url: str) -> None:
    ended = await lintello("migrate", settings=settings(url))
    assert (ended.code, len(ended.errors.splitlines()), "s3cret" in ended.errors) == (2, 1, False)


async def test_a_server_that_is_not_there_is_told_without_the_password() -> None:
    ended = await lintello("migrate", settings=settings("postgresql://u:s3cret@127.0.0.1:9/x"))
    assert (ended.code, len(ended.errors.splitlines()), "s3cret" in ended.errors) == (1, 1, False)


async def test_a_database_that_does_not_exist_is_told_in_one_line(database_url: str) -> None:
    ended = await lintello("migrate", settings=settings(urlunsplit(urlsplit(database_url)._replace(path="/absent"))))
    assert (ended.code, len(ended.errors.splitlines())) == (1, 1)


async def test_a_wrong_password_is_told_without_quoting_it(database_url: str) -> None:
    parts = urlsplit(database_url)
    url = urlunsplit(parts._replace(netloc=f"{parts.username}:s3cret@{parts.hostname}:{parts.port}"))
    ended = await lintello("migrate", settings=settings(url))
    assert (ended.code, len(ended.errors.splitlines()), "s3cret" in ended.errors) == (1, 1, False)
