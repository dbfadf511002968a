"""FAULTS 13 and 14: answers that are none, or come to pieces, through the whole of the stack."""

import pytest

from tests.e2e.client import HARD, first, types
from tests.faults.answers import stored_answer
from tests.faults.replicas import with_one
from tests.faults.site import Site

NOT_AN_ANSWER = [
    {"error_in_200": True},
    {"broken_frame": True},
    {"cut": "before"},
    {"no_done": True, "no_finish": True, "chunks": []},
    {"text": "", "no_done": True},
]
ODD = "L’été, à Nîmes : 3 € pour un naïf ☕ et 🎯 — 日本"


@pytest.mark.parametrize("action", NOT_AN_ANSWER, ids=lambda action: "+".join(action))
@with_one
async def test_an_error_dressed_as_success_is_never_an_empty_answer(site: Site, action: dict[str, object]) -> None:
    """FAULTS 13."""
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 99, "action": action}])
    reader = site.reader()
    await reader.ask("Bonjour")
    assert first(reader.events, "error")
    assert first(reader.events, "done")["partial"] is True
    (run,) = (await site.user.get("/api/runs", conversation_id=reader.events[0]["conversation_id"]))["items"]
    assert run["status"] in ("failed", "partial")


@pytest.mark.parametrize("role", ["decompose", "execute", "critique", "synthesize"])
@with_one
async def test_in_a_think_it_is_a_failed_step_and_still_an_answer(site: Site, role: str) -> None:
    """FAULTS 13."""
    site.trial.set_faults([{"match": {"role": role}, "times": 6, "action": {"error_in_200": True}}])
    reader = site.reader()
    await reader.ask(HARD, mode="recherche")
    assert reader.answer
    failed = [event for event in reader.events if event["type"] == "thinking_step" and event["status"] == "failed"]
    assert role in {event["role"] for event in failed}
    assert first(reader.events, "thinking_completed")["partial"] is True
    assert (await stored_answer(site, reader))["content"] == reader.answer


@with_one
async def test_a_stream_that_breaks_off_after_it_spoke_keeps_what_it_said(site: Site) -> None:
    """FAULTS 13: no `[DONE]` and no reason to end: the answer isn't whole, and that is said."""
    site.trial.set_faults(
        [{"match": {"role": "conversation"}, "times": 1, "action": {"no_done": True, "no_finish": True}}]
    )
    reader = site.reader()
    await reader.ask("Bonjour")
    assert types(reader.events) == ["run_started", "content", "error", "done"]
    assert first(reader.events, "done")["partial"] is True
    assert (await stored_answer(site, reader))["content"] == reader.answer


@with_one
async def test_the_bytes_of_a_character_split_between_chunks_are_the_character(site: Site) -> None:
    """FAULTS 14."""
    site.trial.set_faults(
        [{"match": {"role": "conversation"}, "times": 1, "action": {"text": ODD, "split_bytes": True}}]
    )
    reader = site.reader()
    await reader.ask("Bonjour")
    assert reader.answer == ODD
    assert (await stored_answer(site, reader))["content"] == ODD


@pytest.mark.parametrize("split", [False, True], ids=["whole", "split"])
@with_one
async def test_an_invalid_byte_is_one_replacement_character(site: Site, split: bool) -> None:
    """FAULTS 14."""
    action = {"text": "Une réponse avec un octet faux", "invalid_byte": True, "split_bytes": split}
    site.trial.set_faults([{"match": {"role": "conversation"}, "times": 1, "action": action}])
    reader = site.reader()
    await reader.ask("Bonjour")
    assert reader.answer.count("�") == 1
    assert reader.answer.replace("�", "") == action["text"]
    assert (await stored_answer(site, reader))["content"] == reader.answer
