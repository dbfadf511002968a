"""A question's way through the engine, with a scripted model."""

import pytest

from services.engine.domain import Ending, Role, Status, Thinking, Turn
from services.engine.events import (
    Content,
    Event,
    ModeSwitched,
    RunStarted,
    ThinkingCompleted,
    ThinkingStarted,
    ThinkingStep,
    Trouble,
)
from services.engine.ports import Lease, ModelCall, ModelFailed
from tests.unit.engine.fakes import (
    CALLER,
    HARD,
    STEPS,
    CountingQuota,
    House,
    Script,
    ScriptedModel,
    answer_in,
    done,
    ending_of,
    events,
    good,
)
from tests.unit.engine.stores import MemoryStore


def kinds(found: list[Event]) -> list[str]:
    """The types of events in order, repeats folded."""
    names = [type(event).__name__ for event in found]
    return [name for place, name in enumerate(names) if place == 0 or names[place - 1] != name]


def failing(role: str, times: int = 99, reason: str = "unavailable") -> Script:
    """A model whose calls of one role fail the first `times`."""
    left = {"n": times}

    def script(asked: str, call: ModelCall) -> str | ModelFailed:
        if asked == role and left["n"] > 0:
            left["n"] -= 1
            return ModelFailed(reason, True)
        return good(asked, call)

    return script


async def test_a_hard_question_gets_the_events_of_a_think_in_the_contracts_order() -> None:
    found = await House().ask(HARD, mode="recherche")
    assert kinds(found) == [
        "RunStarted",
        "ThinkingStarted",
        "ThinkingStep",
        "Content",
        "ThinkingStep",
        "ThinkingCompleted",
        "Done",
    ]
    assert answer_in(found) == "La réponse est là. Elle suffit."
    assert done(found).thinking
    assert not done(found).partial


async def test_every_step_is_started_and_then_completed_under_its_parent() -> None:
    house = House()
    steps = [event for event in await house.ask(HARD, mode="recherche") if isinstance(event, ThinkingStep)]
    assert [(step.role, step.status) for step in steps] == [
        (role, status)
        for role in ("decompose", "execute", "execute", "critique", "synthesize")
        for status in ("started", "completed")
    ]
    assert [step.step for step in steps[::2]] == [1, 2, 3, 4, 5]
    assert steps[-1].total == 5
    assert [step.icon for step in steps[:2]] == ["🔍", "✅"]
    assert [step.parent_id for step in steps[2::2]] == [step.node_id for step in steps[:-2:2]]


async def test_the_tree_of_a_chain_is_one_line_that_ends_in_the_selected_answer() -> None:
    house = House()
    found = await house.ask(HARD, mode="recherche")
    nodes = house.store.nodes
    assert [node.role for node in nodes] == [Role.DECOMPOSE, Role.EXECUTE, Role.EXECUTE, Role.CRITIQUE, Role.SYNTHESIZE]
    assert [node.status for node in nodes] == [Status.EXPLORED] * 4 + [Status.SELECTED]
    assert [node.parents for node in nodes] == [(), *((node.id,) for node in nodes[:-1])]
    assert nodes[-1].message_id == done(found).message_id
    assert nodes[1].summary == "Résumé du travail."
    assert nodes[1].content == "Le travail lui-même, en détail."


async def test_each_step_sees_what_the_steps_before_it_established() -> None:
    house = House()
    await house.ask(HARD, mode="recherche")
    asked = [call.turns[-1].content for role, call in house.model.calls if role == "execute"]
    assert "(rien encore)" in asked[0]
    assert "### Lister\nLe travail lui-même" in asked[1]


async def test_the_synthesis_is_given_the_critique() -> None:
    def script(role: str, call: ModelCall) -> str | ModelFailed:
        if role == "critique":
            return '{"satisfied": false, "summary": "Un oubli", "weaknesses": ["Le budget manque : ajoute-le"]}'
        return good(role, call)

    house = House(ScriptedModel(script))
    await house.ask(HARD, mode="recherche")
    assert "- Le budget manque : ajoute-le" in house.model.calls[-1][1].turns[-1].content


async def test_the_slot_is_held_during_the_think_and_given_back_after_it() -> None:
    model = ScriptedModel(hang="critique")
    house = House(model)
    run = await house.start(HARD, mode="recherche")
    await model.hanging.wait()
    assert house.quota.held == {run.run_id}
    run.stop(Ending.STOPPED)
    await events(run)
    assert house.quota.held == set()


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        ("C'est quoi le SEO ?", {"mode": "recherche"}),
        (HARD, {"mode": "conversation"}),
        (HARD, {"mode": "conversation", "thinking": Thinking.ON}),
        (HARD, {"mode": "recherche", "thinking": Thinking.OFF}),
    ],
)
async def test_a_question_that_needs_no_think_gets_a_classic_answer(message: str, fields: dict[str, object]) -> None:
    house = House()
    found = await house.ask(message, CALLER, **fields)
    assert kinds(found) == ["RunStarted", "Content", "Done"]
    assert house.quota.asked == 0
    assert [node.role for node in house.store.nodes] == [Role.CONVERSATION]
    assert not done(found).thinking
    assert done(found).degraded == ""


async def test_thinking_on_skips_the_threshold() -> None:
    found = await House().ask("C'est quoi le SEO ?", mode="recherche", thinking=Thinking.ON)
    assert done(found).thinking


@pytest.mark.parametrize("denial", ["busy", "unavailable"])
async def test_without_a_slot_the_answer_is_classic_and_only_done_says_why(denial: str) -> None:
    house = House(quota=CountingQuota(Lease(False, denial)))  # type: ignore[arg-type]
    found = await house.ask(HARD, mode="recherche")
    assert kinds(found) == ["RunStarted", "Content", "Done"]
    assert done(found).degraded == denial
    assert not done(found).partial
    assert ending_of(house.store) is Ending.DONE


async def test_a_first_node_that_fails_leads_to_a_classic_answer() -> None:
    house = House(ScriptedModel(failing("decompose")))
    found = await house.ask(HARD, mode="recherche")
    assert kinds(found) == [
        "RunStarted",
        "ThinkingStarted",
        "ThinkingStep",
        "ThinkingCompleted",
        "Content",
        "Done",
    ]
    failed = [event for event in found if isinstance(event, ThinkingStep)][-1]
    assert (failed.status, failed.icon, failed.summary) == ("failed", "⚠️", "Le modèle ne répond pas")
    completed = next(event for event in found if isinstance(event, ThinkingCompleted))
    assert completed.partial
    assert done(found).degraded == "failed"
    assert not done(found).thinking
    assert [node.status for node in house.store.nodes] == [Status.PRUNED, Status.SELECTED]
    assert house.store.nodes[0].failure == "unavailable"


async def test_a_step_that_fails_leads_to_the_synthesis_of_what_there_is() -> None:
    calls = {"n": 0}

    def script(role: str, call: ModelCall) -> str | ModelFailed:
        calls["n"] += role == "execute"
        return ModelFailed("timeout", True) if role == "execute" and calls["n"] == 2 else good(role, call)

    house = House(ScriptedModel(script))
    found = await house.ask(HARD, mode="recherche")
    assert [node.role.value for node in house.store.nodes] == ["decompose", "execute", "execute", "synthesize"]
    assert [node.status.value for node in house.store.nodes] == ["explored", "explored", "pruned", "selected"]
    assert house.store.nodes[-1].parents == (house.store.nodes[1].id,)
    assert done(found).partial
    assert done(found).thinking
    assert ending_of(house.store) is Ending.DONE
    assert house.store.finished[0].partial


async def test_all_steps_failing_leads_to_a_classic_answer() -> None:
    found = await House(ScriptedModel(failing("execute"))).ask(HARD, mode="recherche")
    assert answer_in(found)
    assert done(found).degraded == "failed"


async def test_a_stream_that_breaks_after_content_keeps_what_came() -> None:
    house = House(ScriptedModel(break_after=16))
    found = await house.ask(HARD, mode="recherche")
    assert answer_in(found) == "La réponse est l"
    trouble = next(event for event in found if isinstance(event, Trouble))
    assert (trouble.code, trouble.retryable) == ("interrupted", True)
    assert done(found).partial
    assert ending_of(house.store) is Ending.PARTIAL
    assert house.store.finished[0].content == "La réponse est l"


async def test_a_model_that_never_answers_leaves_the_question_and_says_so() -> None:
    house = House(ScriptedModel(lambda role, call: ModelFailed("unavailable", True)))
    found = await house.ask("Bonjour")
    assert kinds(found) == ["RunStarted", "Trouble", "Done"]
    assert done(found).message_id == ""
    assert ending_of(house.store) is Ending.FAILED


async def test_a_stop_in_the_middle_of_the_answer_keeps_what_came_and_counts_it() -> None:
    model = ScriptedModel(hang="end")
    house = House(model)
    run = await house.start("Bonjour")
    await model.hanging.wait()
    run.stop(Ending.STOPPED)
    found = await events(run)
    assert answer_in(found) == "La réponse est là. Elle suffit."
    assert model.closed == 1
    assert done(found).partial
    assert ending_of(house.store) is Ending.STOPPED
    assert house.store.finished[0].usage[0].estimated


async def test_a_stop_in_the_middle_of_a_step_ends_the_think_without_an_answer() -> None:
    model = ScriptedModel(hang="critique")
    house = House(model)
    run = await house.start(HARD, mode="recherche")
    await model.hanging.wait()
    run.stop(Ending.STOPPED)
    found = await events(run)
    assert kinds(found)[-3:] == ["ThinkingStep", "ThinkingCompleted", "Done"]
    assert ending_of(house.store) is Ending.STOPPED
    assert len(house.store.nodes) == 3


async def test_an_answer_that_cannot_be_read_is_asked_for_once_more() -> None:
    answers = iter(["", STEPS])

    def script(role: str, call: ModelCall) -> str | ModelFailed:
        return next(answers) if role == "decompose" or "forme demandée" in call.turns[-1].content else good(role, call)

    house = House(ScriptedModel(script))
    await house.ask(HARD, mode="recherche")
    decompose = house.store.nodes[0]
    assert decompose.status is Status.EXPLORED
    assert decompose.input_tokens == 20


async def test_the_mode_is_detected_from_the_users_words_and_a_switch_is_told() -> None:
    house = House(store=MemoryStore(mode="conversation"))
    found = await house.ask("Compare les pompes à chaleur")
    assert ModeSwitched("conversation", "recherche", "detected") in found
    assert house.store.finished[0].mode == "recherche"
    assert not house.store.finished[0].mode_chosen_by_user


async def test_a_mode_the_user_once_chose_is_kept() -> None:
    house = House(store=MemoryStore(mode="conversation", chosen=True))
    found = await house.ask(HARD)
    assert kinds(found) == ["RunStarted", "Content", "Done"]


async def test_history_is_cut_to_the_subscriptions_budget_but_the_question_stays() -> None:
    long = "mot " * 20_000
    store = MemoryStore(
        [Turn("user", long), Turn("assistant", "ok"), Turn("user", "Et toi ?"), Turn("assistant", "Bien")]
    )
    store.parent = "node"
    house = House(store=store)
    await house.ask("Bonjour " * 2_000)
    turns = house.model.calls[0][1].turns
    assert [turn.content for turn in turns[:-1]] == ["Et toi ?", "Bien"]
    assert turns[-1].content == "Bonjour " * 2_000


async def test_a_thinks_tokens_and_cost_are_those_of_all_its_calls() -> None:
    house = House()
    found = await house.ask(HARD, mode="recherche")
    assert done(found).tokens_used == 5 * 15
    assert done(found).cost_eur == pytest.approx(0.005)
    completed = next(event for event in found if isinstance(event, ThinkingCompleted))
    assert (completed.input_tokens, completed.output_tokens) == (50, 25)
    assert isinstance(found[0], RunStarted)
    assert isinstance(found[1], ThinkingStarted)
    assert any(isinstance(event, Content) for event in found)
