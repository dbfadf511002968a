import asyncio
import sys
import uuid
from typing import Any

import asyncpg
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from kit.database import Database, migrate
from services.treestore.tables import MIGRATIONS, SCHEMA, metadata
from tests.integration.treestore.conftest import new_database


async def tables(url: str) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'treestore'"
        return {row[0] for row in await connection.fetch(query)} - {"alembic_version"}
    finally:
        await connection.close()


async def test_migrations_make_the_tables_that_the_code_knows(url: str) -> None:
    def differences(connection: Any) -> list[Any]:
        options = {"include_schemas": True, "version_table_schema": SCHEMA}
        found: list[Any] = compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        return found

    database = Database(url)
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
    assert seen == [{table.name for table in metadata.tables.values()}, set(), seen[0]]


async def test_runs_from_before_keep_what_they_are_and_are_not_charged(database_url: str) -> None:
    ids = [uuid.uuid4() for _ in range(3)]
    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA, "0001")
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(
                """INSERT INTO treestore.conversation
                   VALUES ($1, 'alice', '', '', '', '', '', 'k1', now(), now())""",
                ids[0],
            )
            await connection.execute(
                """INSERT INTO treestore.run (id, owner, conversation_id, status, step_failed, abandoned, message_id,
                                              parent_node_id, usage, heartbeat_at, created_at, ended_at)
                   VALUES ($1, 'alice', $2, 'done', false, false, $3, 'n1', '[]', now(), now(), now())""",
                ids[1], ids[0], ids[2],
            )  # fmt: skip
            await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
            row = await connection.fetchrow("SELECT * FROM treestore.run")
            unsettled = await connection.fetchval("SELECT count(*) FROM treestore.unsettled_run")
        finally:
            await connection.close()
    assert (row["id"], row["status"], row["parent_node_id"], unsettled) == (ids[1], "done", "n1", 0)
    added = ("subscription", "idempotency_key", "request_hash", "stop_requested", "last_seq", "usage_recorded_at")
    assert [row[name] for name in added] == ["", None, None, False, 0, None]


async def test_two_migrations_at_once_take_turns(database_url: str) -> None:
    script = (
        "import sys; from kit.database import migrate; from services.treestore.tables import MIGRATIONS, SCHEMA;"
        "migrate(sys.argv[1], MIGRATIONS, SCHEMA)"
    )
    async with new_database(database_url) as url:
        processes = [await asyncio.create_subprocess_exec(sys.executable, "-c", script, url) for _ in range(2)]
        assert [await process.wait() for process in processes] == [0, 0]
        assert await tables(url) == {table.name for table in metadata.tables.values()}
