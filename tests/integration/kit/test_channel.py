"""Calls to another service."""

import asyncio
import time

import grpc
import pytest

from kit.channel import Peer
from kit.deadline import MARGIN_SECONDS, deadline
from kit.errors import RemoteError
from tests.integration.kit.example import Example, running_example
from tests.servers.identity import keys

PATIENCE_SECONDS = 10


async def test_a_callee_is_given_the_caller_s_time_less_a_margin(example: Example) -> None:
    token = deadline.set(time.monotonic() + 3)
    try:
        (left,) = await example.ask("budget", timeout=60)
    finally:
        deadline.reset(token)
    assert 0 < float(left) < 3 - MARGIN_SECONDS


async def test_a_call_without_a_deadline_has_its_own_timeout(example: Example) -> None:
    (left,) = await example.ask("budget", timeout=4)
    assert 3 < float(left) < 4


async def test_a_call_whose_time_is_over_fails_by_its_code(example: Example) -> None:
    token = deadline.set(time.monotonic() - 1)
    try:
        with pytest.raises(RemoteError) as refused:
            await example.ask("budget")
    finally:
        deadline.reset(token)
    assert refused.value.code == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_nobody_at_the_address_is_unavailable_without_our_details() -> None:
    async with running_example() as example:
        await example.ask("")
        await example.process.stop()
        with pytest.raises(RemoteError) as refused:
            await example.ask("")
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")


async def test_a_callee_that_restarts_is_found_again() -> None:
    identity = keys()
    async with running_example(identity) as first:
        await first.ask("")
        await first.process.stop()
        with pytest.raises(RemoteError):
            await first.ask("")
        async with running_example(identity, address=first.process.address):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not await _answers(first):
                    await asyncio.sleep(0.05)


async def test_a_large_message_arrives_whole(example: Example) -> None:
    assert await example.ask("x" * 16 * 1024 * 1024) == []


async def test_the_environment_s_proxy_is_not_asked(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    peer = Peer(example.process.address, "engine", keys().gateway_signer.mint)
    try:
        with pytest.raises(RemoteError) as refused:
            await Example(example.process, peer).ask("")
    finally:
        await peer.close()
    # The service itself has answered, to a key that it doesn't know.
    assert refused.value.reason == "UNAUTHENTICATED"


async def _answers(example: Example) -> bool:
    try:
        await example.ask("")
    except RemoteError:
        return False
    return True
