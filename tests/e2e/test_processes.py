"""Processes die and are stopped: what is kept, what comes back, and what is left behind."""

import asyncio
import signal
import sys
from pathlib import Path

import grpc
import httpx
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from lintello.quota.v1 import quota_pb2, quota_pb2_grpc

from cli.local.stack import Stack
from tests.e2e.client import HARD, User
from tests.e2e.shell import let_servers_in, lintello, running


async def token_for(stack: Stack, service: str) -> str:
    ended = await lintello(
        *("token", "--user", "demo", "--subscription", "lintello", "--admin", "--service", service),
        *("--data-dir", str(stack.folder)),
    )
    assert ended.code == 0, ended.err
    return ended.out.strip()


async def slots_taken(stack: Stack) -> int:
    metadata = (("authorization", f"Bearer {await token_for(stack, 'quota')}"),)
    async with grpc.aio.insecure_channel(stack.addresses["quota"]) as channel:
        status = await quota_pb2_grpc.QuotaServiceStub(channel).GetEngineStatus(
            quota_pb2.GetEngineStatusRequest(), metadata=metadata
        )
    return status.active


async def test_the_slot_is_free_as_soon_as_a_think_is_over(user: User, stack: Stack) -> None:
    await user.ask(HARD, mode="recherche")
    assert await slots_taken(stack) == 0


@pytest.mark.parametrize("service", ["engine", "treestore", "quota"])
async def test_a_stranger_with_reflection_finds_the_services_and_needs_a_token(stack: Stack, service: str) -> None:
    async with grpc.aio.insecure_channel(stack.addresses[service]) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        names = await asyncio.to_thread(_reflected, stack.addresses[service])
        ours = [name for name in names if name.startswith("lintello.")]
        assert ours
        for name in ("", *ours):
            answer = await health.Check(health_pb2.HealthCheckRequest(service=name))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        method = await asyncio.to_thread(_first_unary, stack.addresses[service], ours[0])
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await _raw_call(channel, method)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def _raw_call(channel: grpc.aio.Channel, method: str) -> bytes:
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    return await call(b"")


def _reflected(address: str) -> list[str]:
    with grpc.insecure_channel(address) as channel:
        return list(ProtoReflectionDescriptorDatabase(channel).get_services())


def _first_unary(address: str, service: str) -> str:
    with grpc.insecure_channel(address) as channel:
        file = ProtoReflectionDescriptorDatabase(channel).FindFileContainingSymbol(service)
    (found,) = (one for one in file.service if f"{file.package}.{one.name}" == service)
    method = next(method for method in found.method if not method.server_streaming)
    return f"/{service}/{method.name}"


async def test_two_stacks_run_side_by_side_and_leave_no_process(tmp_path_factory: pytest.TempPathFactory) -> None:
    folders: list[Path] = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")]
    for folder in folders:
        let_servers_in(folder)
    async with running(folders[0]) as one, running(folders[1]) as two:
        assert one.url != two.url
        for up in (one, two):
            async with httpx.AsyncClient(base_url=up.url, timeout=30) as http:
                answer = await http.post("/api/chat", json={"message": "Bonjour"})
                assert answer.json()["message"]["content"]
        family = [*one.family(), *two.family()]
        assert len(family) >= 2 * 8
        one.process.send_signal(signal.SIGINT)
        two.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(10):
            assert await one.process.wait() == 0
            assert await two.process.wait() == 0
    assert [process.cmdline() for process in family if process.is_running()] == []


async def test_up_refuses_a_port_that_is_taken_and_a_setting_that_is_not_one(stack: Stack, tmp_path: Path) -> None:
    taken = stack.url.rpartition(":")[2]
    refused = await lintello("up", "--port", taken, "--data-dir", str(tmp_path))
    assert refused.code == 2
    assert taken in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    misspelt = await lintello("up", "--data-dir", str(tmp_path), LINTELLO_MODEL_SMAL="x")
    assert misspelt.code == 2
    assert "LINTELLO_MODEL_SMALL" in misspelt.err


async def test_ask_and_tree_work_from_the_command_line(stack: Stack) -> None:
    asked = await lintello("ask", HARD, "--mode", "recherche", "--think", "on", "--data-dir", str(stack.folder))
    assert asked.code == 0, asked.err
    assert asked.out.count("✅") >= 4
    conversation = next(word for word in asked.out.split() if len(word.strip(".,:")) == 36 and word.count("-") == 4)
    tree = await lintello("tree", conversation.strip(".,:"), "--data-dir", str(stack.folder))
    assert tree.code == 0, tree.err
    assert "🎯" in tree.out


async def test_the_stack_stays_within_its_memory(stack: Stack) -> None:
    """The processes of the stack itself, with the servers and the trial model elsewhere: a smoke bound, PSS."""
    if sys.platform != "linux":
        pytest.skip("PSS is Linux's")
    total = sum(psutil.Process(pid).memory_full_info().pss for pid in stack.children.values())
    assert total < 600 * 1024 * 1024
