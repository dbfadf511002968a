"""FAULTS 3: two tabs on one conversation. (Two writers on one tree, a thousand times: treestore's own tests.)"""

import asyncio

from tests.e2e.client import first
from tests.faults.reader import is_type
from tests.faults.replicas import with_one_and_two, with_one_or_slowly_two
from tests.faults.site import Site

TABS = 20


@with_one_and_two
async def test_a_second_question_at_once_is_refused_at_any_gateway(site: Site) -> None:
    opening = site.reader()
    await opening.ask("Bonjour")
    conversation = first(opening.events, "run_started")["conversation_id"]
    site.trial.set_faults([{"match": {}, "times": 1, "action": {"hang": "before"}}])
    reader = site.reader()
    await reader.ask("Encore", conversation_id=conversation, until=is_type("run_started"))
    for gateway in site.gateways:
        second = await gateway.post("/api/chat", json={"message": "Moi aussi", "conversation_id": conversation})
        assert (second.status_code, second.json()["reason"]) == (409, "RUN_IN_PROGRESS")
    assert (await site.gateways[-1].delete(f"/api/runs/{reader.run_id}")).status_code == 204
    await reader.come_back()
    messages = await site.user.get(f"/api/conversations/{conversation}/messages")
    assert "Moi aussi" not in [message["content"] for message in messages["items"]]


@with_one_or_slowly_two
async def test_of_twenty_tabs_that_ask_at_one_moment_one_is_answered_and_none_is_half_stored(site: Site) -> None:
    opening = site.reader()
    await opening.ask("Bonjour")
    conversation = first(opening.events, "run_started")["conversation_id"]
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": {"delay_ms": 1500}}])

    async def ask(number: int) -> int:
        gateway = site.gateways[number % len(site.gateways)]
        body = {"message": f"Onglet {number}", "conversation_id": conversation, "thinking": "off"}
        return (await gateway.post("/api/chat", json=body)).status_code

    statuses = await asyncio.gather(*(ask(number) for number in range(TABS)))
    assert sorted(statuses) == [200, *[409] * (TABS - 1)]
    messages = (await site.user.get(f"/api/conversations/{conversation}/messages"))["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2
    assert messages[2]["content"] == f"Onglet {statuses.index(200)}"
