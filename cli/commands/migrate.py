"""`lintello migrate`: the schemas of every owner that has one."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from urllib.parse import urlsplit

import asyncpg
from sqlalchemy.exc import SQLAlchemyError

import services
from cli.commands.failure import FAILED, WRONG_USAGE, Failure
from cli.commands.settings import bad_settings_reported, check_settings, setting
from cli.texts import say
from kit.database import async_url
from kit.database import migrate as migrate_schema


def migrate(revision: str) -> None:
    """Bring every owner's schema to `head`, or to `base`: away. Two at once take turns. Raises Failure."""
    check_settings()
    url = setting("DATABASE_URL")
    if not url:
        raise Failure(say("usage.missing", name="LINTELLO_DATABASE_URL"), WRONG_USAGE)
    _check_address(url)
    for owner in owners():
        _migrate(url, owner, revision)
        print(say("migrate.removed" if revision == "base" else "migrate.done", owner=owner.SCHEMA))


def owners() -> Iterator[ModuleType]:
    """The `tables` module, with SCHEMA and MIGRATIONS, of every service that has one."""
    for package in pkgutil.iter_modules(services.__path__, "services."):
        name = f"{package.name}.tables"
        if package.ispkg and importlib.util.find_spec(name) is not None:
            yield importlib.import_module(name)


def _check_address(url: str) -> None:
    """Raise Failure (wrong usage) for what can't be a PostgreSQL URL, before a driver quotes it in its own error."""
    with bad_settings_reported():
        async_url(url)
    try:
        usable = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        usable = False
    if not usable:
        raise Failure(say("usage.database_url"), WRONG_USAGE)


def _migrate(url: str, owner: ModuleType, revision: str) -> None:
    try:
        migrate_schema(url, owner.MIGRATIONS, owner.SCHEMA, revision)
    # By their kind only: a driver's message may quote the URL with its password.
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise Failure(say("failed.database", reason=type(error).__name__), FAILED) from None
    except SQLAlchemyError as error:
        raise Failure(say("failed.migration", owner=owner.SCHEMA, reason=type(error).__name__), FAILED) from None
