"""Calls to a service that has two replicas, of which one dies, drains, hangs and comes back."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass

import grpc
import pytest

from kit.channel import Peer
from kit.errors import RemoteError
from tests.integration.kit.example import Example, running_example
from tests.servers.identity import Keys, keys

RETURN_SECONDS = 2.0
HANG_SECONDS = 10.0
PATIENCE_SECONDS = 20.0


@dataclass
class Pair:
    """Two replicas, and a caller that knows both."""

    one: Example
    other: Example
    both: Example
    identity: Keys

    @property
    def pids(self) -> set[int]:
        """Of both."""
        return {self.one.process.process.pid, self.other.process.process.pid}


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    """Two replicas that have both answered the caller."""
    identity = keys()
    async with running_example(identity) as one, running_example(identity) as other:
        addresses = f"{one.process.address},{other.process.address}"
        peer = Peer(addresses, "engine", identity.gateway_signer.mint)
        try:
            pair = Pair(one, other, Example(one.process, peer), identity)
            await _until(pair.both, pair.pids)
            yield pair
        finally:
            await peer.close()


async def test_calls_go_round(pair: Pair) -> None:
    answered = Counter([await pair.both.where() for _ in range(20)])
    assert answered == dict.fromkeys(pair.pids, 10)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "drained"])
async def test_no_call_fails_when_one_ends(pair: Pair, number: signal.Signals) -> None:
    async with _calling(pair.both) as answered:
        await asyncio.sleep(0.2)
        os.kill(pair.one.process.process.pid, number)
        await pair.one.process.process.wait()
        await asyncio.sleep(0.2)
    assert {type(answer) for answer in answered} == {int}


async def test_one_that_drains_gets_no_new_call_and_ends_what_it_has(pair: Pair) -> None:
    async with aclosing(pair.one.watch("drained", 20)) as events:
        await anext(events)
        pair.one.process.process.terminate()
        await _until(pair.both, {pair.other.process.process.pid})
        assert {await pair.both.where() for _ in range(10)} == {pair.other.process.process.pid}
        assert [event.seq async for event in events][-1] == 20


async def test_one_that_comes_back_is_used_again_within_two_seconds(pair: Pair) -> None:
    pair.one.process.process.kill()
    await pair.one.process.process.wait()
    async with running_example(pair.identity, address=pair.one.process.address) as back:
        async with asyncio.timeout(RETURN_SECONDS):
            await _until(pair.both, {back.process.process.pid, pair.other.process.process.pid})


async def test_no_call_fails_when_one_hangs_and_it_is_left(pair: Pair) -> None:
    with _frozen(pair.one):
        answers = await asyncio.wait_for(asyncio.gather(*(pair.both.where() for _ in range(20))), HANG_SECONDS)
        assert set(answers) == {pair.other.process.process.pid}
        assert {await pair.both.where() for _ in range(10)} == {pair.other.process.process.pid}


async def test_one_that_hung_is_used_again_within_two_seconds(pair: Pair) -> None:
    with _frozen(pair.one):
        await asyncio.gather(*(pair.both.where() for _ in range(4)))
    async with asyncio.timeout(RETURN_SECONDS):
        await _until(pair.both, pair.pids)


async def test_a_stream_from_one_that_hangs_breaks_within_ten_seconds(pair: Pair) -> None:
    async with aclosing(pair.one.watch("hung", 1_000)) as events:
        await anext(events)
        with _frozen(pair.one):
            async with asyncio.timeout(HANG_SECONDS):
                with pytest.raises(RemoteError) as refused:
                    async for _ in events:
                        pass
    assert refused.value.code == grpc.StatusCode.UNAVAILABLE


async def test_while_all_are_gone_a_call_is_unavailable(pair: Pair) -> None:
    for example in (pair.one, pair.other):
        example.process.process.kill()
        await example.process.process.wait()
    with pytest.raises(RemoteError) as refused:
        await pair.both.where()
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")


async def test_a_refusal_of_the_service_s_own_is_not_asked_for_again(pair: Pair) -> None:
    with pytest.raises(RemoteError):
        await pair.both.ask("remote_away")
    await asyncio.gather(pair.one.process.stop(), pair.other.process.stop())
    written = "\n".join(pair.one.process.lines + pair.other.process.lines)
    assert written.count('"code":"UNAVAILABLE"') == 1


async def _until(example: Example, pids: set[int]) -> None:
    """Call until exactly these replicas answer."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while {await example.where() for _ in range(4)} != pids:
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _calling(example: Example) -> AsyncIterator[list[int | RemoteError]]:
    """Meanwhile a call is made every 5 ms. Gathers what came of each."""
    answers: list[int | RemoteError] = []
    calls: list[asyncio.Task[None]] = []

    async def call() -> None:
        try:
            answers.append(await example.where())
        except RemoteError as error:
            answers.append(error)

    async def keep_calling() -> None:
        while True:
            calls.append(asyncio.create_task(call()))
            await asyncio.sleep(0.005)

    task = asyncio.create_task(keep_calling())
    try:
        yield answers
    finally:
        task.cancel()
        await asyncio.gather(*calls)


@contextmanager
def _frozen(example: Example) -> Iterator[None]:
    os.kill(example.process.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(example.process.process.pid, signal.SIGCONT)
