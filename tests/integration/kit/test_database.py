"""The database: transactions that end whole or not at all, and migrations that take turns."""

import asyncio
import secrets
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from kit.database import Database, async_url
from kit.settings import BadSetting
from tests.servers.process import environment

ENV = """
import asyncio
from alembic import context
from kit.database import run_migrations
asyncio.run(run_migrations(context.config, context))
"""
FIRST = """
from alembic import op
revision = "0001"
down_revision = None
def upgrade():
    op.execute('CREATE TABLE "{schema}".thing (id int PRIMARY KEY)')
    op.execute("SELECT pg_sleep(0.3)")
def downgrade():
    op.execute('DROP TABLE "{schema}".thing')
"""
SECOND = """
from alembic import op
revision = "0002"
down_revision = "0001"
def upgrade():
    op.execute('ALTER TABLE "{schema}".thing ADD COLUMN name text')
def downgrade():
    op.execute('ALTER TABLE "{schema}".thing DROP COLUMN name')
"""
BROKEN = """
from alembic import op
revision = "0003"
down_revision = "0002"
def upgrade():
    op.execute('DROP TABLE "{schema}".thing')
    op.execute("SELECT 1 / 0")
"""
WORD = "word-of-a-person"
MIGRATE = """
import sys
from pathlib import Path
from kit.database import migrate
url, folder, *rest = sys.argv[1:]
migrate(url, Path(folder), *rest)
"""


class Owner:
    """The owner of a schema, with an Alembic folder of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.schema = f"owner_{secrets.token_hex(4)}"
        (folder / "versions").mkdir()
        (folder / "env.py").write_text(ENV)
        self.add("0001", FIRST)
        self.add("0002", SECOND)

    def add(self, name: str, script: str) -> None:
        """Add a step."""
        (self.folder / "versions" / f"{name}.py").write_text(script.format(schema=self.schema))

    async def migrate(self, revision: str = "head") -> tuple[int, str]:
        """In a process of its own: its exit code and what it wrote."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", MIGRATE, self.url, str(self.folder), self.schema, revision),
            env=environment({}),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """The session's database."""
    database = Database(database_url)
    yield database
    await database.close()


@pytest.fixture
async def owner(database: Database, database_url: str, tmp_path: Path) -> AsyncIterator[Owner]:
    """Somebody who owns a schema that isn't there yet."""
    owner = Owner(database_url, tmp_path)
    yield owner
    async with database.transaction() as connection:
        await connection.execute(text(f'DROP SCHEMA IF EXISTS "{owner.schema}" CASCADE'))


@pytest.fixture
async def table(database: Database, owner: Owner) -> str:
    """The name of a table with nothing in it."""
    async with database.transaction() as connection:
        await connection.execute(text(f'CREATE SCHEMA "{owner.schema}"'))
        await connection.execute(text(f'CREATE TABLE "{owner.schema}".number (n int PRIMARY KEY, word text)'))
    return f'"{owner.schema}".number'


async def _columns(database: Database, owner: Owner) -> list[str]:
    async with database.transaction() as connection:
        found = await connection.execute(
            text(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_schema = :schema AND table_name = 'thing' ORDER BY ordinal_position"
            ),
            {"schema": owner.schema},
        )
        return list(found.scalars())


async def _count(database: Database, table: str) -> int:
    async with database.transaction() as connection:
        return int((await connection.execute(text(f"SELECT count(*) FROM {table}"))).scalar_one())


async def test_two_migrations_at_once_take_turns(database: Database, owner: Owner) -> None:
    ends = await asyncio.gather(owner.migrate(), owner.migrate())
    assert [code for code, _ in ends] == [0, 0], ends
    assert await _columns(database, owner) == ["id", "name"]


async def test_a_migration_repeated_changes_nothing(database: Database, owner: Owner) -> None:
    await owner.migrate()
    assert (await owner.migrate())[0] == 0
    assert await _columns(database, owner) == ["id", "name"]


async def test_a_migration_goes_forward_and_back_and_forward(database: Database, owner: Owner) -> None:
    for revision, columns in (("head", ["id", "name"]), ("base", []), ("0001", ["id"]), ("head", ["id", "name"])):
        code, output = await owner.migrate(revision)
        assert code == 0, output
        assert await _columns(database, owner) == columns


async def test_a_migration_that_fails_leaves_everything_as_it_was(database: Database, owner: Owner) -> None:
    await owner.migrate()
    owner.add("0003", BROKEN)
    code, output = await owner.migrate()
    assert code != 0
    assert "DivisionByZero" in output
    assert await _columns(database, owner) == ["id", "name"]


async def test_what_is_done_in_a_transaction_stays(database: Database, table: str) -> None:
    async with database.transaction() as connection:
        await connection.execute(text(f"INSERT INTO {table} VALUES (1, NULL)"))
    assert await _count(database, table) == 1


async def test_a_transaction_that_fails_leaves_nothing(database: Database, table: str) -> None:
    with pytest.raises(IntegrityError):
        await _insert_twice(database, table)
    assert await _count(database, table) == 0


async def test_a_transaction_that_is_cancelled_leaves_nothing_and_no_connection_behind(
    database: Database, table: str
) -> None:
    inserted = asyncio.Event()

    async def insert_and_wait() -> None:
        async with database.transaction() as connection:
            await connection.execute(text(f"INSERT INTO {table} VALUES (1, NULL)"))
            inserted.set()
            await connection.execute(text("SELECT pg_sleep(60)"))

    task = asyncio.ensure_future(insert_and_wait())
    await inserted.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await _count(database, table) == 0
    assert database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]


async def test_the_values_of_a_statement_are_not_in_its_exception(database: Database, table: str) -> None:
    with pytest.raises(IntegrityError) as failed:
        await _insert_twice(database, table)
    assert "INSERT INTO" in str(failed.value)
    assert WORD not in str(failed.value)


@pytest.mark.parametrize("url", ["mysql://secret-host/db", "secret-host", "", "postgresql:/secret-host"])
def test_another_database_s_url_is_refused_by_name_and_not_quoted(url: str) -> None:
    with pytest.raises(BadSetting) as refused:
        async_url(url)
    assert str(refused.value).startswith("LINTELLO_DATABASE_URL: ")
    assert "secret" not in str(refused.value)


async def _insert_twice(database: Database, table: str) -> None:
    async with database.transaction() as connection:
        for _ in range(2):
            await connection.execute(text(f"INSERT INTO {table} VALUES (1, :word)"), {"word": WORD})
