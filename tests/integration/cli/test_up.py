"""`lintello up` as a user meets it: what it says and refuses, that nothing is left of it; and who finds it.

One stack serves every test that only asks.
"""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from cli.local.folder import DataFolder
from cli.local.state import State, read_state
from tests.integration.cli.command import interrupt, lintello, outcome, started

STOP_SECONDS = 10


@dataclass
class Running:
    """A stack that has said it is ready."""

    folder: Path
    said: list[str]
    process: asyncio.subprocess.Process

    @property
    def state(self) -> State:
        state = read_state(DataFolder(self.folder))
        assert state is not None
        return state


@asynccontextmanager
async def running(folder: Path, *options: str) -> AsyncIterator[Running]:
    async with started("up", "--data-dir", str(folder), *options) as process:
        assert process.stdout is not None
        said: list[str] = []
        while not said or not said[-1].startswith("LintellO is ready: "):
            line = await asyncio.wait_for(process.stdout.readline(), 60)
            assert line, said
            said.append(line.decode().rstrip())
        try:
            yield Running(folder, said, process)
        finally:
            if process.returncode is None:
                process.terminate()
                await asyncio.wait_for(process.communicate(), 2 * STOP_SECONDS)


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    async with running(tmp_path_factory.mktemp("stack") / "data") as one:
        yield one


async def test_it_says_each_part_and_then_that_it_is_ready(stack: Running) -> None:
    parts = {re.sub(r" \(port \d+\)", "", line) for line in stack.said if line.startswith("✓")}
    assert parts == {
        *("✓ PostgreSQL embarqué", "✓ Valkey embarqué", "✓ migrations de la base", "✓ modèle d'essai"),
        *("✓ moteur", "✓ arbres", "✓ quotas", "✓ passerelle"),
    }
    assert stack.said[-1] == f"LintellO is ready: {stack.state.urls[0]}"


async def test_the_first_start_says_to_back_up_the_key(stack: Running) -> None:
    assert any("encryption_keys" in line and "sauvegardez" in line for line in stack.said)


async def test_a_question_and_its_tree_go_through(stack: Running) -> None:
    asked = await lintello("ask", "C'est quoi le SEO ?", "--json", "--data-dir", str(stack.folder))
    last = json.loads(asked.output.splitlines()[-1])
    assert (asked.code, last["type"]) == (0, "done")
    shown = await lintello("tree", last["conversation_id"], "--data-dir", str(stack.folder))
    assert (shown.code, shown.errors) == (0, "")
    assert "💬" in shown.output.splitlines()[1]


async def test_the_nested_json_of_a_tree_is_printed_as_it_is(stack: Running) -> None:
    asked = await lintello("ask", "C'est quoi le SEO ?", "--json", "--data-dir", str(stack.folder))
    conversation = json.loads(asked.output.splitlines()[-1])["conversation_id"]
    shown = await lintello("tree", conversation, "--json", "--data-dir", str(stack.folder))
    assert json.loads(shown.output)["tree_data"]["nodes"][0]["children"] == []


@pytest.mark.parametrize(("conversation", "code"), [("nope", 2), ("01a22e98-9d77-7094-8d05-0798a7e59c40", 1)])
async def test_a_tree_that_is_not_there_is_told_in_one_line(stack: Running, conversation: str, code: int) -> None:
    ended = await lintello("tree", conversation, "--data-dir", str(stack.folder))
    assert (ended.code, ended.output, len(ended.errors.splitlines())) == (code, "", 1)


async def test_doctor_finds_every_part_healthy(stack: Running) -> None:
    ended = await lintello("doctor", "--data-dir", str(stack.folder))
    healthy = {line.split(" · ")[1].split(" : ")[0] for line in ended.output.splitlines() if line.startswith("ok")}
    assert ended.code == 0
    assert {"base de données", "redis", "pile", "passerelle", "moteur", "arbres", "quotas"} <= healthy


async def test_doctor_shows_no_secret(stack: Running) -> None:
    ended = await lintello("doctor", "--data-dir", str(stack.folder))
    secrets = [path.read_text().strip() for path in (stack.folder / "keys").iterdir()]
    assert len(secrets) >= 5
    assert not any(secret in ended.output + ended.errors for secret in secrets)


async def test_an_internal_token_opens_the_service_it_is_for_and_no_other(stack: Running) -> None:
    import grpc
    from lintello.treestore.v1 import treestore_pb2, treestore_pb2_grpc

    async def call(token: str) -> grpc.StatusCode:
        async with grpc.aio.insecure_channel(stack.state.addresses["treestore"]) as channel:
            stub = treestore_pb2_grpc.TreeStoreServiceStub(channel)
            metadata = (("authorization", f"Bearer {token}"),)
            try:
                await stub.ListConversations(treestore_pb2.ListConversationsRequest(), metadata=metadata)
            except grpc.aio.AioRpcError as error:
                return error.code()
        return grpc.StatusCode.OK

    options = ("--user", "u", "--subscription", "pro", "--data-dir", str(stack.folder))
    right = await lintello("token", *options, "--service", "treestore")
    wrong = await lintello("token", *options, "--service", "engine")
    codes = await call(right.output.strip()), await call(wrong.output.strip())
    assert codes == (grpc.StatusCode.OK, grpc.StatusCode.UNAUTHENTICATED)


async def test_a_folder_in_use_is_told_in_one_line(stack: Running) -> None:
    ended = await lintello("up", "--data-dir", str(stack.folder))
    assert (ended.code, len(ended.errors.splitlines())) == (1, 1)
    assert str(stack.folder) in ended.errors


async def test_an_interrupt_stops_everything_and_leaves_no_process(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as one:
        processes = [psutil.Process(pid) for pid in one.state.pids.values()]
        assert len(processes) >= 7
        interrupt(one.process)
        ended = await asyncio.wait_for(outcome(one.process), STOP_SECONDS)
    assert (ended.code, ended.errors) == (0, "")
    assert not any(process.is_running() for process in processes)


async def test_more_processes_of_a_service_are_said_and_found(tmp_path: Path) -> None:
    async with running(tmp_path / "data", "--replicas", "engine=2,gateway=2") as one:
        assert one.process.stdout is not None
        another = (await asyncio.wait_for(one.process.stdout.readline(), 10)).decode().strip()
        ended = await lintello("doctor", "--data-dir", str(one.folder))
        state = one.state
    assert another == f"Autre passerelle : {state.urls[1]}"
    said = {re.sub(r" \(port \d+\)", "", line) for line in one.said}
    assert {"✓ moteur", "✓ moteur 2", "✓ passerelle", "✓ passerelle 2"} <= said
    assert one.said[-1] == f"LintellO is ready: {state.urls[0]}"
    healthy = {line.split(" · ")[1].split(" : ")[0] for line in ended.output.splitlines() if line.startswith("ok")}
    assert {"moteur", "moteur 2", "passerelle", "passerelle 2"} <= healthy


@pytest.mark.parametrize(
    "given", ["engine", "engine=0", "engine=9", "engine=12", "engine=x", "planner=2", "engine-2=1", ""]
)
async def test_replicas_that_are_none_are_wrong_usage_and_named(tmp_path: Path, given: str) -> None:
    ended = await lintello("up", "--replicas", f"gateway=2,{given}", "--data-dir", str(tmp_path / "data"))
    assert (ended.code, len(ended.errors.splitlines()), f"« {given} »" in ended.errors) == (2, 1, True)
    assert not (tmp_path / "data").exists()


async def test_a_service_is_named_once_among_the_replicas(tmp_path: Path) -> None:
    ended = await lintello("up", "--replicas", "engine=2,engine=3", "--data-dir", str(tmp_path / "data"))
    assert (ended.code, "« engine=3 »" in ended.errors) == (2, True)


async def test_a_port_asked_for_that_is_taken_is_wrong_usage(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = await lintello("up", "--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert (ended.code, ended.errors) == (2, f"Le port {port} est pris.\n")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LINTELLO_DATABSE_URL", "x"),
        ("LINTELLO_LOCALE", "tlh"),
        ("LINTELLO_AUTH_MODE", "nobody"),
        ("LINTELLO_METRICS_PORT", "x"),
    ],
)
async def test_a_bad_setting_is_told_in_one_line_that_names_it(tmp_path: Path, name: str, value: str) -> None:
    ended = await lintello("up", "--data-dir", str(tmp_path / "data"), settings={name: value})
    assert (ended.code, len(ended.errors.splitlines()), name in ended.errors) == (2, 1, True)


async def test_a_database_that_does_not_answer_is_told_without_its_password(tmp_path: Path) -> None:
    settings = {"LINTELLO_DATABASE_URL": "postgresql://u:s3cret@127.0.0.1:9/x"}
    ended = await lintello("up", "--data-dir", str(tmp_path / "data"), settings=settings)
    assert (ended.code, len(ended.errors.splitlines())) == (1, 1)
    assert "s3cret" not in ended.errors + ended.output
