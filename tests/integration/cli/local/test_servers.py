import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest
import redis.asyncio

from cli.local.binaries import postgres_binaries
from cli.local.folder import ROOT_HOME, DataFolder, open_folder, server_user
from cli.local.keys import create_missing_keys, read_keys
from cli.local.postgres import SETTINGS, EmbeddedPostgres
from cli.local.valkey import EmbeddedValkey
from tests.integration.cli.local.parts import Recorder, running_in, until


def _folder(path: Path) -> DataFolder:
    folder = open_folder(path)
    create_missing_keys(folder)
    return folder


@asynccontextmanager
async def _postgres(path: Path, recorder: Recorder) -> AsyncIterator[EmbeddedPostgres]:
    folder = _folder(path)
    server = EmbeddedPostgres(folder, read_keys(folder), on_line=recorder.on_line, on_event=recorder.on_event)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def _valkey(path: Path, recorder: Recorder) -> AsyncIterator[EmbeddedValkey]:
    server = EmbeddedValkey(_folder(path), on_line=recorder.on_line, on_event=recorder.on_event)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


async def _sql(url: str, statement: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def _command(url: str, *words: str) -> object:
    async with redis.asyncio.from_url(url) as client:
        answer: object = await client.execute_command(*words)  # type: ignore[no-untyped-call]
        return answer


async def _patiently(ask: Callable[[], Awaitable[object]]) -> object:
    """What a client does while its server starts again: ask until it answers."""
    async with asyncio.timeout(15):
        while True:
            try:
                return await ask()
            except (OSError, asyncpg.CannotConnectNowError, redis.exceptions.ConnectionError):
                await asyncio.sleep(0.05)


async def test_two_pairs_of_servers_run_side_by_side_each_with_its_own_data(place: Path) -> None:
    one, two = place / "one", place / "two"
    async with (
        _postgres(one, Recorder()) as database,
        _postgres(two, Recorder()) as other_database,
        _valkey(one, Recorder()) as store,
        _valkey(two, Recorder()) as other_store,
    ):
        await _sql(database.url, "CREATE TABLE here (id int)")
        await _command(store.url, "SET", "here", "1")
        assert await _sql(other_database.url, "SELECT to_regclass('here')") is None
        assert await _command(other_store.url, "GET", "here") is None


async def test_the_database_is_durable_owned_by_our_role_and_listens_on_loopback_only(place: Path) -> None:
    async with _postgres(place / "data", Recorder()) as server:
        settings = ("fsync", "synchronous_commit", "full_page_writes", "listen_addresses")
        assert [await _sql(server.url, f"SHOW {name}") for name in settings] == ["on", "on", "on", "127.0.0.1"]
        owner = "SELECT datdba::regrole::text FROM pg_database WHERE datname = current_database()"
        assert await _sql(server.url, owner) == "lintello"
        assert await _sql(server.url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user") is False


async def test_a_wrong_password_is_refused(place: Path) -> None:
    async with _postgres(place / "data", Recorder()) as server:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await _sql(server.url.replace("lintello:", "lintello:x"), "SELECT 1")


async def test_stopping_the_servers_leaves_no_process(place: Path) -> None:
    async with _postgres(place / "data", Recorder()), _valkey(place / "data", Recorder()):
        assert len(running_in(place)) >= 2
    assert running_in(place) == []


async def test_postgres_killed_is_restarted_with_its_data_at_the_same_url(place: Path) -> None:
    recorder = Recorder()
    async with _postgres(place / "data", recorder) as server:
        await _sql(server.url, "CREATE TABLE kept AS SELECT 42 AS n")
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: bool(recorder.heard("restarted", "postgres")))
        assert await _patiently(lambda: _sql(server.url, "SELECT n FROM kept")) == 42
        assert recorder.heard("died", "postgres") == ["SIGKILL"]


async def test_valkey_killed_is_restarted_with_its_data(place: Path) -> None:
    recorder = Recorder()
    async with _valkey(place / "data", recorder) as server:
        await _command(server.url, "SET", "kept", "42")
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: bool(recorder.heard("restarted", "valkey")))
        assert await _patiently(lambda: _command(server.url, "GET", "kept")) == b"42"


async def test_the_data_is_there_after_a_stop_and_a_second_start(place: Path) -> None:
    async with _postgres(place / "data", Recorder()) as server:
        await _sql(server.url, "CREATE TABLE kept AS SELECT 42 AS n")
    async with _postgres(place / "data", Recorder()) as server:
        assert await _sql(server.url, "SELECT n FROM kept") == 42


async def test_a_postgres_left_in_the_folder_is_stopped_before_ours_starts(place: Path) -> None:
    async with _postgres(place / "data", Recorder()) as server:
        await _sql(server.url, "CREATE TABLE kept AS SELECT 42 AS n")
    home = place / "data" / "postgres"
    settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
    command = [str(postgres_binaries() / "postgres"), "-D", str(home), *settings, "--port=0"]
    user = server_user()
    with subprocess.Popen(
        [*command[:-1], "--port=56432"],
        user=user,
        group="nogroup" if user else None,
        cwd="/",
        stderr=subprocess.DEVNULL,
    ) as orphan:
        await until(lambda: (home / "postmaster.pid").exists() and "ready" in (home / "postmaster.pid").read_text())
        async with _postgres(place / "data", Recorder()) as server:
            assert orphan.wait(5) == 0
            assert await _sql(server.url, "SELECT n FROM kept") == 42


async def test_a_pid_file_that_names_another_program_does_not_stop_the_start(place: Path) -> None:
    async with _postgres(place / "data", Recorder()):
        pass
    home = place / "data" / "postgres"
    with subprocess.Popen(["/bin/sleep", "60"], user=server_user()) as other:
        (home / "postmaster.pid").write_text(f"{other.pid}\n{home}\n0\n5432\n\n127.0.0.1\n       0         0\nready\n")
        async with _postgres(place / "data", Recorder()) as server:
            assert await _sql(server.url, "SELECT 1") == 1
        assert other.poll() is None
        other.kill()


async def test_a_first_start_cut_off_half_way_is_begun_again(place: Path) -> None:
    folder = _folder(place / "data")
    draft = folder.path / "postgres.new"
    draft.mkdir()
    (draft / "PG_VERSION").write_text("18\n")
    async with _postgres(place / "data", Recorder()) as server:
        assert await _sql(server.url, "SELECT 1") == 1


async def test_a_long_data_folder_still_has_a_socket_of_legal_length(place: Path) -> None:
    async with _valkey(place / ("d" * 120), Recorder()) as server:
        assert len(server.url.removeprefix("unix://")) <= 100
        assert await _command(server.url, "PING") in (b"PONG", True)
        socket = Path(server.url.removeprefix("unix://"))
        assert socket.parent.stat().st_mode & 0o777 == 0o700
    assert not socket.parent.exists()


async def test_statements_and_their_values_never_reach_the_server_log(place: Path) -> None:
    recorder = Recorder()
    async with _postgres(place / "data", recorder) as server:
        await _sql(server.url, "CREATE TABLE words (word text UNIQUE)")
        await _sql(server.url, "INSERT INTO words VALUES ('canary-7f3a')")
        with pytest.raises(asyncpg.UniqueViolationError):
            await _sql(server.url, "INSERT INTO words VALUES ('canary-7f3a')")
        await until(lambda: any("duplicate key" in line for _, line in recorder.lines))
    assert "canary" not in (place / "data" / "logs" / "postgres.log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's server runs as another user, who can't enter a closed home")
async def test_as_root_a_folder_under_a_closed_home_keeps_its_database_elsewhere(place: Path) -> None:
    place.chmod(0o700)
    async with _postgres(place / "data", Recorder()) as server:
        assert await _sql(server.url, "SELECT 1") == 1
    home = (place / "data" / "postgres").readlink()
    assert home.is_relative_to(ROOT_HOME)
    shutil.rmtree(home.parent)
