"""FAULTS 15: a client is gone, or is slow: the run goes on, for it and for everybody else; nothing grows."""

import asyncio
import time
from contextlib import AsyncExitStack

import httpx
import pytest

from tests.e2e.client import HARD, first
from tests.faults.answers import ANSWER, speak_slowly, stored_answer
from tests.faults.reader import Reader, is_type
from tests.faults.replicas import with_one_and_two, with_one_or_slowly_two
from tests.faults.site import Site

MEBIBYTE = 1024 * 1024
PIECE = "x" * 4000 + " "
LONG = 1000
"""Pieces of a long answer, 4 MB of it."""
STALLED = 20
GROWTH_BYTES = 48 * MEBIBYTE
"""Twenty readers that had 4 MB each waiting for them somewhere would be 80 MB, in each process on the way."""


@with_one_and_two
async def test_a_client_that_goes_away_comes_back_and_has_each_event_once(site: Site) -> None:
    speak_slowly(site, seconds=3)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    for _ in range(5):
        await reader.open_once(until=is_type("content"))
    await reader.come_back()
    assert [event["seq"] for event in reader.events] == list(range(1, len(reader.events) + 1))
    assert reader.answer == ANSWER
    assert first(reader.events, "done")["partial"] is False


@with_one_and_two
async def test_a_client_that_is_gone_for_good_finds_the_whole_answer_in_its_conversation(site: Site) -> None:
    speak_slowly(site, seconds=1)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("run_started"))
    async with asyncio.timeout(15):
        while (await site.user.get("/api/runs", status="running"))["items"]:
            await asyncio.sleep(0.1)
    answer = await stored_answer(site, reader)
    assert (answer["content"], answer["partial"]) == (ANSWER, False)
    assert (await site.usage_of(reader.run_id)).partial is False


@with_one_and_two
async def test_many_readers_of_one_run_see_the_same(site: Site) -> None:
    speak_slowly(site, seconds=2)
    asking = site.reader()
    await asking.ask(HARD, mode="recherche", until=is_type("thinking_started"))
    others = [site.reader(asking.run_id, gateway=number % len(site.gateways)) for number in range(10)]
    await asyncio.gather(asking.come_back(), *(other.come_back() for other in others))
    assert all(other.events == asking.events for other in others)


@with_one_or_slowly_two
async def test_connections_of_a_client_that_are_reset_again_and_again_cost_it_nothing(site: Site) -> None:
    speak_slowly(site, seconds=4)
    async with site.proxied_gateway() as (proxy, http):
        reader = Reader([http])
        asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
        await site.call_of("synthesize")
        for _ in range(6):
            await asyncio.sleep(0.5)
            proxy.reset()
        await asking
    assert reader.connections >= 6
    assert reader.answer == ANSWER


def speak_at_length(site: Site, seconds: float) -> None:
    """The next classic answer is 4 MB long and takes so many seconds."""
    rate = LONG * len(PIECE) / 4 / seconds
    action = {"chunks": [PIECE] * LONG, "rate": rate}
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": action}])


@pytest.mark.timeout(240)
@with_one_or_slowly_two
async def test_readers_that_stall_slow_nobody_and_make_nothing_grow(site: Site) -> None:
    parts = [*site.processes.replicas("engine"), *site.processes.replicas("gateway")]
    speak_at_length(site, 3)
    warm = site.reader()
    await warm.ask("Raconte", thinking="off")
    before = {part: site.processes.resident_bytes(part) for part in parts}
    speak_at_length(site, 6)
    reader = site.reader()
    await reader.ask("Raconte", thinking="off", until=is_type("content"))
    async with AsyncExitStack() as opened:
        for number in range(STALLED):
            await opened.enter_async_context(stalled(site, reader.run_id, number))
        began = time.monotonic()
        await reader.come_back()
        took = time.monotonic() - began
        assert reader.answer == PIECE * LONG
        grown = {part: site.processes.resident_bytes(part) - before[part] for part in parts}
    assert took < 6 + 10, "a reader that stalls held up another"
    assert max(grown.values()) < GROWTH_BYTES, grown


@with_one_or_slowly_two
async def test_a_slow_reader_gets_everything_at_its_own_pace(site: Site) -> None:
    speak_at_length(site, 1)
    async with site.proxied_gateway() as (proxy, http):
        reader = Reader([http])
        with proxy.slowed(bytes_per_second=2 * MEBIBYTE):
            await reader.ask("Raconte", thinking="off", until=is_type("content"))
            async with asyncio.timeout(15):
                while (await site.user.get("/api/runs", status="running"))["items"]:
                    await asyncio.sleep(0.1)
            assert not reader.done
            await reader.come_back()
    assert reader.answer == PIECE * LONG


def stalled(site: Site, run_id: str, number: int) -> "_Stalled":
    """A connection that asks for a run's events and never reads one."""
    return _Stalled(site.stack.gateway_urls[number % len(site.gateways)], run_id)


class _Stalled:
    def __init__(self, url: str, run_id: str) -> None:
        self._url = httpx.URL(url)
        self._run_id = run_id
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> None:
        reader, self._writer = await asyncio.open_connection(self._url.host, self._url.port, limit=1024)
        request = f"GET /api/runs/{self._run_id}/events HTTP/1.1\r\nHost: {self._url.netloc.decode()}\r\n\r\n"
        self._writer.write(request.encode())
        assert b"200" in await reader.readline()

    async def __aexit__(self, *_: object) -> None:
        assert self._writer is not None
        self._writer.transport.abort()
