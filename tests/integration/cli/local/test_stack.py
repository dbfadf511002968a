import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from cli.local.errors import FolderInUse, PortTaken, StartFailed
from cli.local.folder import DataFolder, open_folder
from cli.local.health import grpc_serving, http_ready
from cli.local.ports import LOOPBACK, free_port
from cli.local.process import EventKind
from cli.local.services import DEFAULT_GATEWAY_PORT, DEFAULT_GRPC_PORT
from cli.local.stack import Stack, StackOptions
from cli.local.state import read_state
from tests.integration.cli.local.parts import COMMANDS, Recorder, commands, part, running_in, until

ROOT = Path(__file__).parents[4]


@contextmanager
def _listener(port: int) -> Iterator[int]:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen()
        yield listener.getsockname()[1]


def _supervisor(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.integration.cli.local.supervisor", str(folder)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def _read_until_ready(supervisor: "subprocess.Popen[str]") -> None:
    assert supervisor.stdout is not None
    assert any(line.startswith("ready ") for line in supervisor.stdout)


async def test_inside_all_is_healthy_and_described_and_outside_nothing_is_left(place: Path) -> None:
    recorder = Recorder()
    async with Stack(recorder.options(place / "data"), COMMANDS) as stack:
        state = read_state(DataFolder(place / "data"))
        assert state is not None
        assert (state.urls, state.addresses, state.pids) == (stack.gateway_urls, stack.addresses, stack.children)
        assert await http_ready(int(stack.url.rpartition(":")[2]))
        for address in state.addresses.values():
            assert await grpc_serving(int(address.rpartition(":")[2]))
        assert set(state.pids) == {"postgres", "valkey", "trial", "treestore", "quota", "engine", "gateway"}
        assert all(psutil.pid_exists(pid) for pid in state.pids.values())
    assert running_in(place) == []
    assert read_state(DataFolder(place / "data")) is None
    assert [name for kind, name, _ in recorder.events if kind == "killed"] == []


async def test_what_the_environment_names_is_used_and_nothing_of_ours_started_instead(place: Path) -> None:
    given = {"DATABASE_URL": "postgresql://there", "REDIS_URL": "redis://there", "LLM_BASE_URL": "http://there"}
    environment = {**os.environ, **{f"LINTELLO_{name}": value for name, value in given.items()}}
    recorder = Recorder()
    options = StackOptions(recorder.on_event, recorder.on_line, data_dir=place / "data", environment=environment)
    async with Stack(options, COMMANDS) as stack:
        assert set(stack.children) == {"treestore", "quota", "engine", "gateway"}
        assert psutil.Process(stack.children["engine"]).environ()["LINTELLO_LLM_BASE_URL"] == "http://there"
        assert not stack.trial_model


async def test_only_the_first_start_makes_keys_and_says_which_to_back_up(place: Path) -> None:
    first, second = Recorder(), Recorder()
    async with Stack(first.options(place / "data"), COMMANDS):
        pass
    async with Stack(second.options(place / "data"), COMMANDS):
        pass
    assert first.heard("keys_created", "keys") == [str(place / "data" / "keys" / "encryption_keys")]
    assert second.heard("keys_created", "keys") == []


async def test_two_stacks_started_at_the_same_moment_run_side_by_side(place: Path) -> None:
    async with asyncio.timeout(60):
        one = Stack(Recorder().options(place / "one"), COMMANDS)
        two = Stack(Recorder().options(place / "two"), COMMANDS)
        try:
            await asyncio.gather(one.__aenter__(), two.__aenter__())
            assert not {one.url, *one.addresses.values()} & {two.url, *two.addresses.values()}
            assert await http_ready(int(one.url.rpartition(":")[2]))
            assert await http_ready(int(two.url.rpartition(":")[2]))
        finally:
            await asyncio.gather(one.__aexit__(None, None, None), two.__aexit__(None, None, None))
    assert running_in(place) == []


async def test_a_second_stack_on_the_same_folder_is_refused_and_the_first_goes_on(place: Path) -> None:
    async with Stack(Recorder().options(place / "data"), COMMANDS) as stack:
        with pytest.raises(FolderInUse, match=str(place / "data")):
            async with Stack(Recorder().options(place / "data"), COMMANDS):
                pass
        assert read_state(DataFolder(place / "data")) is not None
        assert await http_ready(int(stack.url.rpartition(":")[2]))


async def test_a_port_asked_for_that_is_taken_is_refused_by_its_number(place: Path) -> None:
    with _listener(0) as port, pytest.raises(PortTaken, match=str(port)):
        async with Stack(Recorder().options(place / "data", port=port), COMMANDS):
            pass
    assert running_in(place) == []


async def test_a_grpc_port_asked_for_that_is_taken_is_refused_by_its_number(place: Path) -> None:
    with _listener(0) as port, pytest.raises(PortTaken, match=str(port)):
        async with Stack(Recorder().options(place / "data", grpc_port=port - 1), COMMANDS):
            pass


async def test_default_ports_that_are_taken_move_on_and_it_is_said(place: Path) -> None:
    recorder = Recorder()
    # A machine where they are in use already serves as well.
    taken = [port for port in (DEFAULT_GATEWAY_PORT, DEFAULT_GRPC_PORT + 2) if _bindable(port)]
    listeners = [_listener(port) for port in taken]
    for listener in listeners:
        listener.__enter__()
    try:
        async with Stack(recorder.options(place / "data"), COMMANDS) as stack:
            [moved] = recorder.heard("port_moved", "gateway")
            assert stack.url.endswith(moved.split()[1])
            assert moved.split()[1] != str(DEFAULT_GATEWAY_PORT)
            assert len(recorder.heard("port_moved", "grpc")) == 1
    finally:
        for listener in listeners:
            listener.__exit__(None, None, None)


def _bindable(port: int) -> bool:
    try:
        with _listener(port):
            return True
    except OSError:
        return False


async def test_a_port_taken_between_choice_and_start_is_chosen_anew(place: Path) -> None:
    recorder = Recorder()
    stack_commands = commands(gateway=part("robbed", str(place / "stolen")))
    try:
        async with Stack(recorder.options(place / "data"), stack_commands) as stack:
            assert len(recorder.heard("starting", "gateway")) == 2
            assert await http_ready(int(stack.url.rpartition(":")[2]))
    finally:
        for line in running_in(place):
            os.kill(int(line.split()[0]), signal.SIGKILL)


async def test_bad_settings_end_the_start_with_the_parts_own_line(place: Path) -> None:
    with pytest.raises(StartFailed) as failed:
        async with Stack(Recorder().options(place / "data"), commands(quota=part("bad"))):
            pass
    assert (failed.value.name, failed.value.exit_code) == ("quota", 2)
    assert failed.value.message == "LINTELLO_LOCALE: 'xx' is not one of fr, en"
    assert running_in(place) == []


async def test_a_failed_migration_ends_the_start(place: Path) -> None:
    broken = commands()
    with pytest.raises(StartFailed, match="migrate"):
        async with Stack(Recorder().options(place / "data"), type(broken)(part("bad"), broken.trial, broken.services)):
            pass
    assert running_in(place) == []


async def test_a_service_that_dies_is_restarted_said_and_described_anew(place: Path) -> None:
    recorder = Recorder()
    async with Stack(recorder.options(place / "data"), COMMANDS) as stack:
        before = stack.children["engine"]
        os.kill(before, signal.SIGKILL)
        await until(lambda: bool(recorder.heard("restarted", "engine")))
        assert recorder.heard("died", "engine") == ["SIGKILL"]
        state = read_state(DataFolder(place / "data"))
        assert state is not None
        assert state.pids["engine"] == stack.children["engine"] != before
        port = int(stack.addresses["engine"].rpartition(":")[2])
        async with asyncio.timeout(15):
            while not await grpc_serving(port):
                await asyncio.sleep(0.05)


async def test_a_hung_gateway_is_killed_and_all_is_stopped_within_ten_seconds(place: Path) -> None:
    recorder = Recorder()
    stack = Stack(recorder.options(place / "data"), commands(gateway=part("deaf")))
    await stack.__aenter__()
    asked = time.monotonic()
    await stack.__aexit__(None, None, None)
    assert time.monotonic() - asked < 10
    assert len(recorder.heard("killed", "gateway")) == 1
    assert running_in(place) == []


async def test_a_cancelled_stop_still_stops_everything(place: Path) -> None:
    stack = Stack(Recorder().options(place / "data"), COMMANDS)
    await stack.__aenter__()
    stopping = asyncio.ensure_future(stack.__aexit__(None, None, None))
    await asyncio.sleep(0)
    for _ in range(3):
        stopping.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert running_in(place) == []


async def test_a_terminal_that_is_gone_does_not_keep_it_from_stopping(place: Path) -> None:
    recorder = Recorder()
    gone = False

    def tell(kind: EventKind, name: str, detail: str) -> None:
        recorder.on_event(kind, name, detail)
        if gone:
            raise BrokenPipeError

    async with Stack(StackOptions(tell, recorder.on_line, data_dir=place / "data"), COMMANDS):
        gone = True
    assert recorder.events[-1][0] == "stopped"
    assert running_in(place) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_stops_a_supervisor_and_all_its_parts(place: Path, number: signal.Signals) -> None:
    with _supervisor(place / "data") as supervisor:
        await asyncio.to_thread(_read_until_ready, supervisor)
        supervisor.send_signal(number)
        assert await asyncio.to_thread(supervisor.wait, 10) == 0
    assert running_in(place) == []


async def test_a_signal_during_the_start_leaves_nothing_either(place: Path) -> None:
    with _supervisor(place / "data") as supervisor:
        assert supervisor.stdout is not None
        await asyncio.to_thread(supervisor.stdout.readline)
        supervisor.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(supervisor.wait, 10) == 0
    assert running_in(place) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only the Linux kernel ends the children of a killed process")
async def test_a_killed_supervisor_leaves_nothing_and_the_next_start_works(place: Path) -> None:
    with _supervisor(place / "data") as supervisor:
        await asyncio.to_thread(_read_until_ready, supervisor)
        supervisor.kill()
        supervisor.wait()
        # At once, while its parts are still ending.
        async with Stack(Recorder().options(place / "data"), COMMANDS) as stack:
            assert await http_ready(int(stack.url.rpartition(":")[2]))
    await until(lambda: running_in(place) == [], 5)


@pytest.mark.skipif(sys.platform != "linux", reason="only the Linux kernel ends the children of a killed process")
async def test_a_killed_supervisor_leaves_no_process(place: Path) -> None:
    with _supervisor(place / "data") as supervisor:
        await asyncio.to_thread(_read_until_ready, supervisor)
        supervisor.kill()
    await until(lambda: running_in(place) == [], 5)
    assert read_state(open_folder(place / "data")) is None


async def test_a_port_nobody_listens_on_is_not_healthy() -> None:
    port = free_port()
    assert not await http_ready(port)
    assert not await grpc_serving(port)
