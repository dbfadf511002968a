"""FAULTS 7: PostgreSQL restarts in the middle of a stream: the stream goes on, the save is tried again.

What can't be saved is partial and says so; a user's message that was accepted is never lost.
"""

import asyncio
import uuid

import pytest

from tests.e2e.client import HARD, first
from tests.faults.answers import ANSWER, speak_slowly, stored_answer
from tests.faults.reader import is_type, started
from tests.faults.replicas import with_one_or_slowly_two
from tests.faults.site import Site

GIVES_UP_SECONDS = 15.0
"""An engine tries to store the end of a run for less than it takes to be thought dead."""


@pytest.mark.parametrize("how", ["restart", "kill"])
@with_one_or_slowly_two
async def test_a_restart_in_the_middle_of_an_answer_is_not_noticed(site: Site, how: str) -> None:
    speak_slowly(site, seconds=3)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    asking = asyncio.create_task(reader.come_back())
    await asyncio.sleep(0.5)
    before = site.processes.kill("postgres") if how == "kill" else site.processes.terminate("postgres")
    await site.processes.back("postgres", instead_of=before)
    await asking
    assert reader.answer == ANSWER
    assert first(reader.events, "done")["partial"] is False
    assert (await stored_answer(site, reader))["content"] == ANSWER


@with_one_or_slowly_two
async def test_nodes_that_end_while_it_is_away_are_stored_when_it_is_back(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "execute"}, "times": 9, "action": {"delay_ms": 700}}])
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=started(2))
    asking = asyncio.create_task(reader.come_back())
    async with site.database.refusing():
        await asyncio.sleep(2.5)
    await asking
    conversation = first(reader.events, "run_started")["conversation_id"]
    tree = await site.user.get(f"/api/conversations/{conversation}/tree")
    assert tree["tree_data"]["nodes"] == first(reader.events, "thinking_completed")["tree_data"]["nodes"]
    assert first(reader.events, "done")["partial"] is False


@with_one_or_slowly_two
async def test_an_end_that_comes_while_it_is_away_is_saved_when_it_is_back(site: Site) -> None:
    speak_slowly(site, seconds=1)
    reader = site.reader()
    await reader.ask(HARD, mode="recherche", until=is_type("content"))
    asking = asyncio.create_task(reader.come_back())
    async with site.database.refusing():
        await asyncio.sleep(5)
        assert not asking.done()
    await asking
    assert first(reader.events, "done")["partial"] is False
    assert (await stored_answer(site, reader))["content"] == ANSWER


@pytest.mark.slow
@pytest.mark.parametrize("how", ["refuses", "stalls"])
@with_one_or_slowly_two
async def test_an_end_that_cannot_be_saved_is_said_and_the_question_is_kept(site: Site, how: str) -> None:
    speak_slowly(site, seconds=1)
    marker = uuid.uuid4().hex
    reader = site.reader()
    await reader.ask(f"{HARD} {marker}", mode="recherche", until=is_type("content"))
    asking = asyncio.create_task(reader.come_back())
    if how == "stalls":
        with site.database.stalled():
            await asyncio.wait_for(asking, GIVES_UP_SECONDS + 15)
    else:
        async with site.database.refusing():
            await asyncio.wait_for(asking, GIVES_UP_SECONDS + 15)
    assert reader.answer == ANSWER
    assert first(reader.events, "error")["code"] == "not_saved"
    assert first(reader.events, "done")["partial"] is True
    conversation = first(reader.events, "run_started")["conversation_id"]
    await site.calm()
    messages = (await site.user.get(f"/api/conversations/{conversation}/messages"))["items"]
    assert messages[0]["content"] == f"{HARD} {marker}"
    (run,) = (await site.user.get("/api/runs", conversation_id=conversation))["items"]
    assert run["status"] == "partial"
    assert (await site.usage_of(reader.run_id)).partial


@with_one_or_slowly_two
async def test_a_question_asked_while_it_is_away_is_refused_or_kept_and_never_lost(site: Site) -> None:
    """A client that insists, with one key, is answered once when it is back."""
    marker = uuid.uuid4().hex
    reader = site.reader()
    async with site.database.refusing():
        refused = await site.gateways[-1].post("/api/chat", json={"message": "Perdue ?"})
        assert refused.status_code == 503
        asking = asyncio.create_task(reader.ask(f"Bonjour {marker}"))
        await asyncio.sleep(1)
        assert not asking.done()
    await asking
    assert first(reader.events, "done")["partial"] is False
    assert len([call for call in site.trial.calls if marker in str(call.body)]) == 1


@with_one_or_slowly_two
async def test_connections_that_are_reset_under_load_fail_no_question(site: Site) -> None:
    async def ask(number: int) -> None:
        await asyncio.sleep(number / 20)
        reader = site.reader(gateway=number % len(site.gateways))
        await reader.ask(f"Question {number}", thinking="off")
        assert first(reader.events, "done")["partial"] is False

    async def spoil() -> None:
        for _ in range(4):
            await asyncio.sleep(0.5)
            site.database.reset()

    await asyncio.gather(spoil(), *(ask(number) for number in range(40)))
