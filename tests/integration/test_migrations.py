"""Every owner's schema: what its migrations make is what its code knows, and they go both ways."""

import asyncio
import sys
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import MetaData

from kit.database import Database, migrate
from services.quota import tables as quota
from services.treestore import tables as treestore
from tests.servers.database import new_database


class Owner(Protocol):
    """The tables module of a service."""

    __name__: str
    SCHEMA: str
    MIGRATIONS: Path
    metadata: MetaData


@pytest.fixture(params=[quota, treestore], ids=["quota", "treestore"])
def owner(request: pytest.FixtureRequest) -> Owner:
    found: Owner = request.param
    return found


async def tables(url: str, schema: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = $1"
        return {row[0] for row in await connection.fetch(query, schema)} - {"alembic_version"}
    finally:
        await connection.close()


async def test_migrations_make_the_tables_that_the_code_knows(database_url: str, owner: Owner) -> None:
    def differences(connection: Any) -> list[Any]:
        options: dict[str, Any] = {
            "include_schemas": True,
            "include_name": lambda name, kind, _: kind != "schema" or name == owner.SCHEMA,
            "version_table_schema": owner.SCHEMA,
        }
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), owner.metadata)
        return found

    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, owner.MIGRATIONS, owner.SCHEMA)
        database = Database(url)
        try:
            async with database.transaction() as connection:
                assert await connection.run_sync(differences) == []
        finally:
            await database.close()


async def test_migrations_go_forward_back_and_forward_again(database_url: str, owner: Owner) -> None:
    async with new_database(database_url) as url:
        seen = []
        for revision in ("head", "base", "head"):
            await asyncio.to_thread(migrate, url, owner.MIGRATIONS, owner.SCHEMA, revision)
            seen.append(await tables(url, owner.SCHEMA))
    assert seen == [{table.name for table in owner.metadata.tables.values()}, set(), seen[0]]


async def test_two_migrations_at_once_take_turns(database_url: str, owner: Owner) -> None:
    script = (
        f"import sys; from kit.database import migrate; from {owner.__name__} import MIGRATIONS, SCHEMA;"
        "migrate(sys.argv[1], MIGRATIONS, SCHEMA)"
    )
    async with new_database(database_url) as url:
        processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", script, url) for _ in range(2)]
        assert [await process.wait() for process in processes] == [0, 0]
        assert await tables(url, owner.SCHEMA) == {table.name for table in owner.metadata.tables.values()}
