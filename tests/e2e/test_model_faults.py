"""A model that misbehaves: an answer every time, and a tree that tells what happened (FAULTS 10–13, THINKING 7)."""

import asyncio

import pytest

from cli.trial.server import TrialServer
from tests.e2e.client import HARD, User, answer_in, first, types

SMALL, LARGE = "lintello-essai-small", "lintello-essai-large"


def rule(times: int, role: str = "", **action: object) -> dict[str, object]:
    """A rule for the model server."""
    return {"match": {"role": role} if role else {}, "times": times, "action": action}


async def flat_tree(user: User, conversation_id: str) -> list[dict[str, object]]:
    tree = await user.get(f"/api/conversations/{conversation_id}/tree", shape="flat")
    nodes: list[dict[str, object]] = tree["tree_data"]["nodes"]
    return nodes


@pytest.mark.parametrize("retry_after", ["1", "-5", "soon"])
async def test_a_429_is_waited_out_and_the_answer_comes(user: User, trial: TrialServer, retry_after: str) -> None:
    trial.set_faults([rule(1, "decompose", status=429, headers={"Retry-After": retry_after})])
    events = await user.ask(HARD, mode="recherche")
    assert first(events, "done")["partial"] is False
    assert [call.status for call in trial.calls if call.role == "decompose"] == [429, 200]


async def test_a_large_model_that_keeps_failing_hands_over_to_small_and_the_node_says_so(
    user: User, trial: TrialServer
) -> None:
    trial.set_faults([rule(3, "conversation", status=500)])
    events = await user.ask("Bonjour", model="large")
    done = first(events, "done")
    assert done["model"] == SMALL
    assert [call.model for call in trial.calls] == [LARGE, LARGE, LARGE, SMALL]
    (node,) = await flat_tree(user, done["conversation_id"])
    assert (node["model"], node["fallback_from"]) == (SMALL, LARGE)


async def test_a_retry_after_longer_than_thirty_seconds_goes_to_the_next_model_at_once(
    user: User, trial: TrialServer
) -> None:
    trial.set_faults([rule(1, "conversation", status=429, headers={"Retry-After": "120"})])
    done = first(await user.ask("Bonjour", model="large"), "done")
    assert [call.model for call in trial.calls] == [LARGE, SMALL]
    assert done["model"] == SMALL


async def test_a_first_node_that_fails_leads_to_a_classic_answer(user: User, trial: TrialServer) -> None:
    trial.set_faults([rule(1, "decompose", status=400)])
    events = await user.ask(HARD, mode="recherche")
    assert types(events) == [
        "run_started",
        "thinking_started",
        "thinking_step",
        "thinking_completed",
        "content",
        "done",
    ]
    done = first(events, "done")
    assert (done["degraded"], done["thinking"]) == ("failed", False)
    assert first(events, "thinking_completed")["partial"] is True
    failed, answered = await flat_tree(user, done["conversation_id"])
    assert (failed["role"], failed["status"], failed["failure"]) == ("decompose", "pruned", "refused")
    assert (answered["role"], answered["status"]) == ("conversation", "selected")


async def test_a_model_that_refuses_every_try_leaves_the_question_and_says_so(user: User, trial: TrialServer) -> None:
    trial.set_faults([rule(99, status=503)])
    events = await user.ask("Bonjour")
    assert types(events) == ["run_started", "error", "done"]
    assert first(events, "error")["retryable"] is True
    assert len(trial.calls) == 3
    done = first(events, "done")
    assert (done["message_id"], done["partial"]) == (None, True)
    (question,) = (await user.get(f"/api/conversations/{done['conversation_id']}/messages"))["items"]
    assert question["content"] == "Bonjour"


async def test_reasoning_tags_reach_neither_the_user_nor_a_later_prompt(user: User, trial: TrialServer) -> None:
    hidden = "<think>a secret thought</think>"
    trial.set_faults(
        [
            rule(1, "execute", text=f"{hidden}Résumé\n\nLe travail"),
            rule(1, "synthesize", chunks=["<thi", "nk>a secret ", "thought</th", "ink>La réponse."]),
        ]
    )
    events = await user.ask(HARD, mode="recherche")
    assert answer_in(events).strip() == "La réponse."
    assert all("secret" not in str(call.body) for call in trial.calls)
    nodes = await flat_tree(user, first(events, "done")["conversation_id"])
    assert "secret" not in str(nodes)


@pytest.mark.parametrize("odd", ["une\u2028ligne", "deux\nlignes", "nul\x00 ici", "une moitié \ud83d seule"])
async def test_odd_characters_of_a_model_stay_one_event_each(user: User, trial: TrialServer, odd: str) -> None:
    trial.set_faults([rule(1, "conversation", text=odd)])
    events = await user.ask("Bonjour")
    expected = odd.replace("\x00", "").replace("\ud83d", "\ufffd")
    assert answer_in(events) == expected
    done = first(events, "done")
    _, answer = (await user.get(f"/api/conversations/{done['conversation_id']}/messages"))["items"]
    assert answer["content"] == expected


async def test_a_think_that_waits_does_not_hold_up_the_others(user: User, trial: TrialServer) -> None:
    trial.set_faults([rule(1, "decompose", delay_ms=1500)])
    slow = asyncio.create_task(user.ask(HARD, mode="recherche"))
    await asyncio.sleep(0.2)
    assert first(await user.ask("Bonjour"), "done")["partial"] is False
    assert not slow.done()
    assert first(await slow, "done")["partial"] is False
