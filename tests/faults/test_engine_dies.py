"""FAULTS 1: an engine is killed in the middle of a think.

The slot is free within 30 s, finished nodes are in the tree, the run reads partial, its usage is recorded once.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from tests.e2e.client import HARD, Event, first
from tests.faults.conftest import Sites
from tests.faults.reader import Reader, started
from tests.faults.replicas import ONE, TWO
from tests.faults.site import Site

SLOT_SECONDS = 30.0
LEFT_AFTER = 3
"""How many events the client has that goes away and comes back."""


@dataclass(frozen=True)
class Aftermath:
    """What is left of a think whose engine was killed while its second step ran."""

    site: Site
    reader: Reader
    """The client that stayed."""
    returned: Reader
    """The client that had left before, and came back after the end."""
    slot_seconds: float
    """From the kill until the slot was free."""

    @property
    def started(self) -> Event:
        return first(self.reader.events, "run_started")

    async def nodes(self) -> list[Event]:
        tree = await self.site.user.get(f"/api/conversations/{self.started['conversation_id']}/tree", shape="flat")
        nodes: list[Event] = tree["tree_data"]["nodes"]
        return [node for node in nodes if node["run_id"] == self.reader.run_id]


@pytest.fixture(scope="module", params=[ONE, TWO])
async def aftermath(sites: Sites, request: pytest.FixtureRequest) -> AsyncIterator[Aftermath]:
    """One kill, of the engine that has the run, whose consequences the tests look at."""
    site = await sites(request.param)
    await site.calm()
    site.trial.set_faults([{"match": {"role": "execute", "nth": 2}, "times": 1, "action": {"hang": "before"}}])
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    call = await site.call_of("execute", 2)
    await reader.heard(started(3))
    assert await site.holds_slot(reader.run_id)
    killed_at = time.monotonic()
    site.processes.kill(site.engine_of(call))
    async with asyncio.timeout(SLOT_SECONDS + 15):
        while await site.holds_slot(reader.run_id):
            await asyncio.sleep(0.2)
    slot_seconds = time.monotonic() - killed_at
    async with asyncio.timeout(30):
        await asking
    returned = site.reader(reader.run_id, gateway=len(site.gateways) - 1)
    returned.events = reader.events[:LEFT_AFTER]
    await returned.come_back()
    yield Aftermath(site, reader, returned, slot_seconds)
    await site.calm()


async def test_the_slot_is_free_within_thirty_seconds(aftermath: Aftermath) -> None:
    assert aftermath.slot_seconds <= SLOT_SECONDS


async def test_a_client_that_stayed_gets_what_there_was_then_error_and_done(aftermath: Aftermath) -> None:
    *before, error, done = aftermath.reader.events
    assert "thinking_step" in {event["type"] for event in before}
    assert (error["type"], error["code"], error["retryable"]) == ("error", "interrupted", True)
    assert (done["type"], done["partial"], done["run_id"]) == ("done", True, aftermath.reader.run_id)


async def test_a_client_that_comes_back_later_gets_the_very_same_events(aftermath: Aftermath) -> None:
    assert aftermath.returned.events == aftermath.reader.events


async def test_the_nodes_that_were_finished_are_in_the_tree(aftermath: Aftermath) -> None:
    assert [(node["role"], node["status"]) for node in await aftermath.nodes()] == [
        ("decompose", "explored"),
        ("execute", "explored"),
    ]


async def test_the_run_reads_partial_and_goes_on_no_more(aftermath: Aftermath) -> None:
    runs = await aftermath.site.user.get("/api/runs", conversation_id=str(aftermath.started["conversation_id"]))
    (run,) = runs["items"]
    assert (run["run_id"], run["status"]) == (aftermath.reader.run_id, "partial")
    assert run["ended_at"] is not None
    assert (await aftermath.site.user.get("/api/runs", status="running"))["items"] == []


async def test_the_question_is_still_there(aftermath: Aftermath) -> None:
    messages = await aftermath.site.user.get(f"/api/conversations/{aftermath.started['conversation_id']}/messages")
    assert [(message["role"], message["content"]) for message in messages["items"]] == [("user", HARD)]


async def test_its_usage_is_recorded_once_and_is_what_its_nodes_took(aftermath: Aftermath) -> None:
    usage = await aftermath.site.usage_of(aftermath.reader.run_id)
    nodes = await aftermath.nodes()
    assert usage.tokens == sum(node["input_tokens"] + node["output_tokens"] for node in nodes) > 0
    assert (usage.partial, usage.estimated) == (True, True)


async def test_the_conversation_goes_on(aftermath: Aftermath) -> None:
    again = aftermath.site.reader()
    await again.ask("Reprends", conversation_id=aftermath.started["conversation_id"])
    assert first(again.events, "done")["partial"] is False
