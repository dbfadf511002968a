"""A stack with several processes of a service; and one process held down while the rest goes on."""

import asyncio
import os
import signal
import socket
from pathlib import Path

import psutil
import pytest

from cli.local.errors import BadReplicas, PortTaken
from cli.local.folder import DataFolder
from cli.local.health import grpc_serving, http_ready
from cli.local.ports import LOOPBACK, free_port
from cli.local.stack import Stack, StackOptions
from cli.local.state import State, read_state
from tests.integration.cli.local.parts import COMMANDS, Recorder, commands, part, running_in, until


def _state(place: Path) -> State:
    state = read_state(DataFolder(place / "data"))
    assert state is not None
    return state


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


async def test_each_process_listens_where_the_stack_and_its_file_say(place: Path) -> None:
    recorder = Recorder()
    async with Stack(recorder.options(place / "data", engine=2, gateway=3), COMMANDS) as stack:
        assert len(stack.gateway_urls) == 3
        assert all([await http_ready(_port(url)) for url in stack.gateway_urls])
        addresses = stack.grpc_addresses("engine")
        assert len(addresses) == 2
        assert all([await grpc_serving(_port(address)) for address in addresses])
        assert _state(place).urls == stack.gateway_urls
        assert _state(place).addresses["engine-2"] == addresses[1]
        assert {"engine", "engine-2", "gateway", "gateway-2", "gateway-3"} < set(stack.children)
        assert len(set(stack.children.values())) == len(stack.children)
        heard = recorder.heard("healthy", "engine-2")
    assert heard == [str(_port(addresses[1]))]
    assert running_in(place) == []


async def test_who_calls_a_service_is_given_all_of_its_addresses(place: Path) -> None:
    async with Stack(Recorder().options(place / "data", engine=2, quota=2), COMMANDS) as stack:
        told = {name: psutil.Process(pid).environ() for name, pid in stack.children.items()}
        assert told["gateway"]["LINTELLO_ENGINE_ADDRESS"] == ",".join(stack.grpc_addresses("engine"))
        assert told["engine-2"]["LINTELLO_QUOTA_ADDRESS"] == ",".join(stack.grpc_addresses("quota"))
        assert told["engine-2"]["LINTELLO_ENGINE_ADDRESS"] == stack.grpc_addresses("engine")[1]


async def test_one_of_two_that_dies_is_restarted_alone(place: Path) -> None:
    recorder = Recorder()
    async with Stack(recorder.options(place / "data", engine=2), COMMANDS) as stack:
        before = stack.children
        os.kill(before["engine-2"], signal.SIGKILL)
        await until(lambda: bool(recorder.heard("restarted", "engine-2")))
        after = stack.children
        assert {name for name in after if after[name] != before[name]} == {"engine-2"}
        assert _state(place).pids == after


@pytest.mark.parametrize("name", ["engine", "valkey", "postgres"])
async def test_a_part_that_is_held_down_stays_so_until_the_end_and_then_comes_back(place: Path, name: str) -> None:
    recorder = Recorder()
    async with Stack(recorder.options(place / "data"), COMMANDS) as stack:
        before = stack.children[name]
        async with stack.hold(name):
            assert stack.children[name] == 0
            assert not psutil.pid_exists(before)
            await asyncio.sleep(1)
            assert recorder.heard("restarted", name) == []
        assert recorder.heard("died", name) == ["SIGKILL"]
        assert stack.children[name] not in (0, before)
        os.kill(stack.children[name], signal.SIGKILL)
        await until(lambda: len(recorder.heard("restarted", name)) == 2)


async def test_a_stack_that_stops_does_not_wake_what_is_held_down(place: Path) -> None:
    stack = Stack(Recorder().options(place / "data"), COMMANDS)
    await stack.__aenter__()
    async with stack.hold("engine"):
        await stack.__aexit__(None, None, None)
    assert running_in(place) == []


async def test_the_gateways_are_told_to_end_when_the_engines_are_gone_and_the_others_after_them(place: Path) -> None:
    names = ("engine", "gateway", "quota", "treestore")
    diary = place / "diary"
    parts = commands(**{name: part("diary", name, str(diary)) for name in names})
    async with Stack(Recorder().options(place / "data", engine=2), parts):
        pass
    lines = diary.read_text().splitlines()
    assert lines[:6] == [*["engine told"] * 2, *["engine gone"] * 2, "gateway told", "gateway gone"]
    assert sorted(lines[6:8]) == ["quota told", "treestore told"]


async def test_each_grpc_process_is_told_a_port_of_metrics_of_its_own_and_it_is_said(place: Path) -> None:
    base = free_port()
    recorder = Recorder()
    environment = {**os.environ, "LINTELLO_METRICS_PORT": str(base)}
    options = StackOptions(
        recorder.on_event, recorder.on_line, data_dir=place / "data", environment=environment, replicas={"engine": 2}
    )
    async with Stack(options, COMMANDS) as stack:
        told = {
            name: psutil.Process(pid).environ().get("LINTELLO_METRICS_PORT") for name, pid in stack.children.items()
        }
    expected = {"engine": base, "engine-2": base + 1, "treestore": base + 2, "quota": base + 3}
    assert {name: port for name, port in told.items() if port} == {name: str(at) for name, at in expected.items()}
    assert {name: recorder.heard("metrics", name) for name in expected} == {
        name: [str(at)] for name, at in expected.items()
    }


async def test_a_port_of_metrics_that_is_taken_is_refused_by_its_number(place: Path) -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        environment = {**os.environ, "LINTELLO_METRICS_PORT": str(port)}
        options = StackOptions(
            Recorder().on_event, Recorder().on_line, data_dir=place / "data", environment=environment
        )
        with pytest.raises(PortTaken) as refused:
            async with Stack(options, COMMANDS):
                pass
    assert (refused.value.port, refused.value.asked) == (port, True)


def test_no_stack_has_nine_engines() -> None:
    with pytest.raises(BadReplicas, match="engine=9"):
        Recorder().options(Path("data"), engine=9)
