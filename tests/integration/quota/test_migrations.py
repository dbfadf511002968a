"""The schema `quota`: what the migrations make is what the code knows, and they go both ways."""

import asyncio
from typing import Any

import asyncpg
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kit.database import Database, migrate
from services.quota.tables import MIGRATIONS, SCHEMA, metadata
from tests.servers.database import new_database


async def tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'quota'"
        return {row[0] for row in await connection.fetch(query)} - {"alembic_version"}
    finally:
        await connection.close()


async def test_migrations_make_the_tables_that_the_code_knows(books_url: str) -> None:
    def differences(connection: Any) -> list[Any]:
        options = {"include_schemas": True, "version_table_schema": SCHEMA}
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return found

    database = Database(books_url)
    try:
        async with database.transaction() as connection:
            assert await connection.run_sync(differences) == []
    finally:
        await database.close()


async def test_migrations_go_forward_back_and_forward_again(database_url: str) -> None:
    async with new_database(database_url) as url:
        seen = []
        for revision in ("head", "base", "head"):
            await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA, revision)
            seen.append(await tables(url))
    assert seen == [{"usage_log"}, set(), {"usage_log"}]
