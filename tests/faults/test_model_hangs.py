"""FAULTS 12: the model hangs before or in the middle of an answer: the idle timeout ends it, what came is kept."""

import asyncio
import time

import pytest

from tests.e2e.client import HARD, first, types
from tests.faults.answers import stored_answer
from tests.faults.replicas import with_one
from tests.faults.site import IDLE_SECONDS, TIMEOUT_SECONDS, Site

MARGIN_SECONDS = 5.0


@with_one
async def test_a_hang_in_the_middle_of_the_answer_keeps_what_came(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "synthesize"}, "times": 1, "action": {"hang": "middle"}}])
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    await site.call_of("synthesize")
    hung_at = time.monotonic()
    await asking
    assert time.monotonic() - hung_at < IDLE_SECONDS + MARGIN_SECONDS
    assert types(reader.events)[-3:] == ["thinking_completed", "error", "done"]
    done = first(reader.events, "done")
    assert (done["partial"], done["thinking"]) == (True, True)
    answer = await stored_answer(site, reader)
    assert answer["content"] == reader.answer
    assert answer["content"]
    assert answer["partial"] is True
    assert (await site.usage_of(reader.run_id)).estimated


@with_one
async def test_a_hang_after_the_headers_is_an_error_that_can_be_tried_again(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 99, "action": {"hang": "headers"}}])
    reader = site.reader()
    await reader.ask("Bonjour")
    assert types(reader.events) == ["run_started", "error", "done"]
    assert first(reader.events, "error")["retryable"] is True


@pytest.mark.slow
@with_one
async def test_a_hang_before_the_headers_ends_with_the_time_a_call_has(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "decompose"}, "times": 99, "action": {"hang": "before"}}])
    reader = site.reader()
    asking = asyncio.create_task(reader.ask(HARD, mode="recherche"))
    call = await site.call_of("decompose")
    await asking
    assert call.ended_at is not None
    assert TIMEOUT_SECONDS - 1 < call.ended_at - call.started_at < TIMEOUT_SECONDS + MARGIN_SECONDS
    done = first(reader.events, "done")
    assert (done["degraded"], done["partial"]) == ("failed", True)
    assert (await stored_answer(site, reader))["content"] == reader.answer != ""


@with_one
async def test_a_run_that_hangs_holds_up_no_other(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "decompose"}, "times": 20, "action": {"hang": "before"}}])
    hanging = [site.reader() for _ in range(10)]
    tasks = [asyncio.create_task(reader.ask(HARD, mode="recherche")) for reader in hanging]
    await site.call_of("decompose", 10)
    quick = site.reader()
    await quick.ask("Bonjour")
    assert first(quick.events, "done")["partial"] is False
    assert not any(task.done() for task in tasks)
    for reader in hanging:
        await site.gateways[0].delete(f"/api/runs/{reader.run_id}")
    await asyncio.gather(*tasks)
