"""Database: connections to PostgreSQL that keep values out of every message, and migrations under a lock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from asyncpg.exceptions import (
    AdminShutdownError,
    CannotConnectNowError,
    CrashShutdownError,
    InvalidAuthorizationSpecificationError,
    InvalidCatalogNameError,
    PostgresConnectionError,
    TooManyConnectionsError,
    UndefinedTableError,
)
from sqlalchemy import text
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from kit.settings import BadSetting

# The server is going, coming, full or out of reach.
_AWAY = (
    AdminShutdownError,
    CannotConnectNowError,
    CrashShutdownError,
    PostgresConnectionError,
    TooManyConnectionsError,
    PoolTimeout,
    OSError,
)
MAYBE_AWAY = (DBAPIError, *_AWAY)
"""What a statement raises when PostgreSQL isn't there, among other things; `is_away` tells."""


def async_url(url: str) -> str:
    """The same URL for asyncpg. Raises BadSetting when it isn't PostgreSQL's."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+asyncpg"):
        raise BadSetting("LINTELLO_DATABASE_URL: must begin with postgresql://")
    return f"postgresql+asyncpg://{rest}"


def open_engine(url: str, **options: Any) -> AsyncEngine:
    """An engine that keeps values out of its messages. Raises BadSetting when the URL isn't one of PostgreSQL's."""
    try:
        return create_async_engine(async_url(url), hide_parameters=True, **options)
    except (ArgumentError, ValueError):
        raise BadSetting("LINTELLO_DATABASE_URL: isn't a URL") from None


def driver_error(error: DBAPIError) -> BaseException | None:
    """What asyncpg raised, of which SQLAlchemy made its own."""
    return error.orig.__cause__ if error.orig is not None else None


def is_away(error: BaseException) -> bool:
    """Whether this means that PostgreSQL doesn't answer, so that trying again may help."""
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(driver_error(error), _AWAY)
    return isinstance(error, _AWAY)


def as_bad_setting(error: DBAPIError, schema: str) -> BadSetting | None:
    """What is wrong with DATABASE_URL, when PostgreSQL answered and this error says so."""
    problems = {
        UndefinedTableError: f"it has no {schema} tables; run lintello migrate",
        InvalidCatalogNameError: "there is no such database",
        InvalidAuthorizationSpecificationError: "the server refuses this user or password",
    }
    for kind, problem in problems.items():
        if isinstance(driver_error(error), kind):
            return BadSetting(f"LINTELLO_DATABASE_URL: {problem}")
    return None


class Database:
    """A pool of connections."""

    def __init__(self, url: str, pool_size: int = 10) -> None:
        """`pool_size` connections are kept, and as many more are opened under load."""
        self.engine = open_engine(url, pool_size=pool_size, max_overflow=pool_size, pool_use_lifo=True)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end, rolled back on any exception, also a cancellation."""
        async with self.engine.begin() as connection:
            yield connection

    async def close(self) -> None:
        """Close every connection."""
        await self.engine.dispose()


def migrate(url: str, migrations: Path, schema: str, revision: str = "head") -> None:
    """Bring one owner's schema to a revision (`base`: remove it). Two at once take turns.

    `migrations` is the owner's Alembic folder; its env.py calls `run_migrations`.
    """
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = url
    config.attributes["schema"] = schema
    if revision == "base":
        command.downgrade(config, revision)
    else:
        command.upgrade(config, revision)


async def run_migrations(config: Any, context: Any) -> None:
    """What an owner's env.py does: take the lock, make the schema, run the scripts, all in one transaction."""
    schema: str = config.attributes["schema"]
    engine = open_engine(config.attributes["url"])
    try:
        async with engine.begin() as connection:
            await connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtext(:name))"), {"name": f"migrate {schema}"}
            )
            await connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
            await connection.run_sync(_upgrade, schema, context)
    finally:
        await engine.dispose()


def _upgrade(connection: Any, schema: str, context: Any) -> None:
    context.configure(connection=connection, version_table_schema=schema, include_schemas=True)
    with context.begin_transaction():
        context.run_migrations()
