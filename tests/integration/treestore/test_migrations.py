import asyncio
import uuid

import asyncpg

from kit.database import migrate
from services.treestore.tables import MIGRATIONS, SCHEMA
from tests.integration.treestore.client import Client
from tests.servers.database import new_database


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


async def test_a_table_that_changes_while_it_is_read_fails_no_call(alice: Client, sql: asyncpg.Connection) -> None:
    conversation_id = (await alice.create()).conversation_id
    await alice.messages(conversation_id)
    await sql.execute("ALTER TABLE treestore.conversation ALTER COLUMN mode TYPE varchar(100)")
    try:
        assert (await alice.messages(conversation_id)).messages == []
    finally:
        await sql.execute("ALTER TABLE treestore.conversation ALTER COLUMN mode TYPE text")
