"""FAULTS 5: whatever is repeated has the same answer and no second effect."""

import asyncio
import uuid

import httpx
import pytest

from tests.e2e.client import HARD, first
from tests.faults.reader import Reader, is_type
from tests.faults.replicas import with_one_and_two, with_one_or_slowly_two
from tests.faults.site import Site

TWINS = 10


@with_one_and_two
async def test_ten_twins_at_one_moment_are_one_run_and_all_get_its_events(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "synthesize"}, "times": TWINS, "action": {"delay_ms": 1000}}])
    key, marker = str(uuid.uuid4()), uuid.uuid4().hex
    twins = [site.reader(gateway=number % len(site.gateways)) for number in range(TWINS)]
    await asyncio.gather(*(twin.ask(f"{HARD} {marker}", mode="recherche", key=key) for twin in twins))
    assert len({twin.run_id for twin in twins}) == 1
    assert all(twin.events == twins[0].events for twin in twins)
    runs = (await site.user.get("/api/runs", conversation_id=twins[0].events[0]["conversation_id"]))["items"]
    assert len(runs) == 1
    mine = [call for call in site.trial.calls if marker in str(call.body)]
    assert len([call for call in mine if call.role == "decompose"]) == 1
    assert len([call for call in mine if call.role == "synthesize"]) == 1
    assert (await site.usage_of(twins[0].run_id)).tokens == first(twins[0].events, "done")["tokens_used"]


@with_one_and_two
async def test_a_twin_that_comes_after_the_end_gets_the_run_that_was(site: Site) -> None:
    reader, key = site.reader(), str(uuid.uuid4())
    await reader.ask("Bonjour", key=key)
    calls = len(site.trial.calls)
    twin = site.reader(gateway=len(site.gateways) - 1)
    await twin.ask("Bonjour", key=key)
    assert twin.events == reader.events
    assert len(site.trial.calls) == calls


@with_one_and_two
async def test_one_key_with_another_body_is_refused(site: Site) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    first_time = await site.gateways[0].post("/api/chat", json={"message": "Bonjour"}, headers=key)
    assert first_time.status_code == 200
    for path in ("/api/chat", "/api/chat/stream", "/api/runs"):
        refused = await site.gateways[-1].post(path, json={"message": "Bonsoir"}, headers=key)
        assert (refused.status_code, refused.json().get("reason")) == (409, "IDEMPOTENCY_KEY_REUSED"), refused.text
        assert "Bonsoir" not in refused.text


@with_one_or_slowly_two
async def test_twins_of_which_one_goes_away_don_t_stop_the_others_run(site: Site) -> None:
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": {"delay_ms": 1500}}])
    key = str(uuid.uuid4())
    leaving, staying = site.reader(), site.reader(gateway=len(site.gateways) - 1)
    asking = asyncio.create_task(staying.ask("Bonjour", key=key))
    await leaving.ask("Bonjour", key=key, until=is_type("run_started"))
    await asking
    assert first(staying.events, "done")["partial"] is False


@with_one_or_slowly_two
async def test_a_run_started_without_a_stream_is_the_same_run_when_it_is_asked_for_again(site: Site) -> None:
    key = {"Idempotency-Key": str(uuid.uuid4())}
    answers = [
        await site.gateways[number % len(site.gateways)].post("/api/runs", json={"message": "Bonjour"}, headers=key)
        for number in range(4)
    ]
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    reader = site.reader(answers[0].json()["run_id"])
    await reader.come_back()
    assert first(reader.events, "done")["partial"] is False


@with_one_or_slowly_two
async def test_a_question_whose_reply_was_lost_is_answered_once(site: Site) -> None:
    """The client's connection breaks after its request and before a byte of the answer, twice."""
    marker = uuid.uuid4().hex
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": {"delay_ms": 1000}}])
    async with site.proxied_gateway() as (proxy, http):
        reader = Reader([http])
        with proxy.stalled():
            asking = asyncio.create_task(reader.ask(f"Bonjour {marker}"))
            await asyncio.sleep(0.3)
            proxy.reset()
            await asyncio.sleep(0.5)
            proxy.reset()
        await asking
    assert reader.connections >= 3
    assert reader.done
    assert len([call for call in site.trial.calls if marker in str(call.body)]) == 1


@pytest.mark.parametrize("repeated", ["stop", "delete"])
@with_one_or_slowly_two
async def test_a_write_repeated_at_another_gateway_has_the_same_answer(site: Site, repeated: str) -> None:
    reader = site.reader()
    await reader.ask("Bonjour")
    conversation = first(reader.events, "run_started")["conversation_id"]
    path = f"/api/runs/{reader.run_id}" if repeated == "stop" else f"/api/conversations/{conversation}"
    answers: list[httpx.Response] = []
    for _ in range(2):
        answers += [await gateway.delete(path) for gateway in site.gateways]
    assert {(answer.status_code, answer.content) for answer in answers} == {(204, b"")}
