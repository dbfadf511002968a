"""The engine's pure parts: complexity, routing, reading, context, events, modes."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from services.engine import context, routing
from services.engine.complexity import assess
from services.engine.domain import Role, Turn
from services.engine.events import Content, Done, EventLog, Trouble
from services.engine.modes.catalog import BadModes, Catalog
from services.engine.modes.config import ChainConfig
from services.engine.reading import SUMMARY_CHARACTERS, read_critique, read_steps, split_summary
from services.engine.subscriptions import subscription_of

DONE = Done("c", "m", "n", "model", 0, 0.0, False, False, "")


@pytest.mark.parametrize(
    ("message", "complexity"),
    [
        ("C'est quoi le SEO ?", 1),
        ("Bonjour", 1),
        ("Compare trois façons de financer une coopérative, avec budget et étapes", 3),
        ("COMPARE les budgets", 3),
        (
            "Fais un planning, analyse mes contraintes et compare : maths, physique, chimie, anglais, dessin",
            4,
        ),
        ("Quelle heure est-il ? Et demain ?", 2),
        (
            "Si le budget est dépassé alors réduis, compare, organise, trie, classe. Pourquoi ? Comment ?"
            + " mot" * 100,
            5,
        ),
        ("Il a recomparé les prix", 1),
        ("Il coûte 1,5 ou 2,5 ou 3,5 ou 4,5 euros", 1),
    ],
)
def test_complexity_counts_length_keywords_constraints_and_questions(message: str, complexity: int) -> None:
    assert assess(message).complexity == complexity


@given(st.text())
def test_complexity_is_always_from_1_to_5(message: str) -> None:
    assert 1 <= assess(message).complexity <= 5


@pytest.mark.parametrize(
    ("role", "tokens", "config", "requested", "detected", "alias"),
    [
        (Role.EXECUTE, 100, {}, None, None, "small"),
        (Role.EXECUTE, 7_000, {}, None, None, "small"),
        (Role.EXECUTE, 7_001, {"model_override": "codestral"}, None, None, "large"),
        (Role.SYNTHESIZE, 3_000, {}, None, None, "small"),
        (Role.SYNTHESIZE, 3_001, {"model_override": "small"}, None, None, "large"),
        (Role.EXECUTE, 3_001, {}, None, None, "small"),
        (Role.EXECUTE, 1, {"model_override": "pixtral", "steps_model": "small"}, "large", "codestral", "pixtral"),
        (Role.EXECUTE, 1, {"steps_model": "codestral", "synthesis_model": "large"}, None, None, "codestral"),
        (Role.SYNTHESIZE, 1, {"steps_model": "codestral", "synthesis_model": "large"}, None, None, "large"),
        (Role.EXECUTE, 1, {}, "large", "codestral", "large"),
        (Role.EXECUTE, 1, {}, None, "codestral", "codestral"),
        (Role.CONVERSATION, 1, None, None, None, "small"),
    ],
)
def test_the_first_rule_that_matches_chooses_the_model(  # type: ignore[no-untyped-def]
    role: Role, tokens: int, config: dict[str, object] | None, requested, detected, alias: str
) -> None:
    built = None if config is None else ChainConfig.model_validate(config)
    assert routing.choose(role, tokens, built, requested, detected) == alias


@pytest.mark.parametrize(
    ("message", "alias"),
    [
        ("Écris une fonction de tri en Python", "codestral"),
        ("```\nx = 1\n```", "codestral"),
        ("SELECT name FROM users WHERE id = 3", "codestral"),
        ("Une recette de pain", None),
        ("Le python est un serpent", None),
    ],
)
def test_code_is_detected_by_its_look(message: str, alias: str | None) -> None:
    assert routing.detect(message) == alias


@pytest.mark.parametrize(
    "text",
    [
        '{"steps": [{"title": "Un", "goal": "a"}, {"title": "Deux", "goal": "b"}]}',
        'Voici :\n```json\n{"steps": [{"title": "Un", "goal": "a"}, {"title": "Deux", "goal": "b"}]}\n```\nBien.',
        'Bien sûr. {"steps": [{"title": "Un", "goal": "a"}, {"title": "Deux", "goal": "b"}]} Voilà.',
        '[{"title": "Un", "goal": "a"}, {"title": "Deux", "goal": "b"}]',
        '{"etapes": ["Un : a", "Deux : b"]}',
        '{"steps": [{"title": "Un", "goal": "a"}, {"title": "Deux", "goal": "b"',
        "1. Un : a\n2. Deux : b",
        "Les étapes :\n- **Un**\n- **Deux**\n",
        "Étape 1 : Un\nÉtape 2 : Deux",
        "Un\nDeux",
    ],
)
def test_steps_are_read_in_every_form_a_model_writes(text: str) -> None:
    steps = read_steps(text, 6)
    assert steps is not None
    assert [step.title for step in steps] == ["Un", "Deux"]


@pytest.mark.parametrize("text", ["", "   ", "Je ne peux pas répondre à cela.", "{}", '{"steps": []}'])
def test_what_holds_no_steps_is_read_as_none(text: str) -> None:
    assert read_steps(text, 6) is None


def test_two_hundred_steps_are_cut_to_the_most_allowed() -> None:
    steps = read_steps("\n".join(f"{n}. Étape {n}" for n in range(1, 201)), 4)
    assert steps is not None
    assert len(steps) == 4


@given(st.text(max_size=400))
def test_reading_never_raises_whatever_a_model_writes(text: str) -> None:
    read_steps(text, 4)
    read_critique(text)
    split_summary(text)


@given(st.text(alphabet='{}[]",:0123456789truefalsnicgdep \n-', max_size=300))
def test_reading_never_raises_on_almost_json(text: str) -> None:
    steps = read_steps(text, 4)
    assert steps is None or 1 <= len(steps) <= 4
    read_critique('{"satisfied"' + text)


def test_deeply_nested_json_is_not_read_and_does_not_raise() -> None:
    assert read_steps("[" * 100_000, 4) is None


def test_a_critique_with_points_is_not_satisfied_whatever_it_says() -> None:
    critique = read_critique('{"satisfied": true, "summary": "s", "weaknesses": ["un point"]}')
    assert critique is not None
    assert not critique.satisfied


def test_a_critique_in_prose_asks_for_changes() -> None:
    critique = read_critique("Le budget n'est pas chiffré.")
    assert critique is not None
    assert critique.weaknesses == ("Le budget n'est pas chiffré.",)


def test_the_opening_line_is_the_summary_and_leaves_the_content() -> None:
    assert split_summary("Résumé : trois pistes\n\nLe détail.") == ("trois pistes", "Le détail.")


def test_without_an_opening_line_the_first_sentence_is_the_summary() -> None:
    text = "Une phrase. Une autre phrase\nsur deux lignes."
    assert split_summary(text) == ("Une phrase.", text)


@given(st.text(max_size=600))
def test_a_summary_is_one_short_line(text: str) -> None:
    parts = split_summary(text)
    if parts is not None:
        assert len(parts[0]) <= SUMMARY_CHARACTERS
        assert len(parts[0].splitlines()) <= 1


def test_history_begins_with_a_question_and_keeps_the_newest() -> None:
    turns = [Turn("user", "a " * 4000), Turn("assistant", "b"), Turn("user", "c"), Turn("assistant", "d")]
    assert [turn.content for turn in context.cut(turns, 2_000)] == ["c", "d"]


def test_an_unknown_subscription_is_treated_as_the_free_one() -> None:
    assert subscription_of("inconnu") == subscription_of("gratuit")
    assert subscription_of("gratuit").history_tokens == 2_000


async def test_the_first_piece_goes_at_once_and_those_after_it_are_joined() -> None:
    log = EventLog()
    for piece in ("a", "b", "c"):
        log.emit(Content(piece))
    assert log.last_seq == 1
    log.emit(DONE)
    assert [numbered.event for numbered in [n async for n in log.follow()]] == [Content("a"), Content("bc"), DONE]


async def test_pieces_that_reach_four_kilobytes_go_without_waiting() -> None:
    log = EventLog()
    log.emit(Content("a"))
    log.emit(Content("é" * 2_048))
    assert log.last_seq == 2


async def test_a_reader_gets_every_number_once_and_in_order_whenever_it_comes() -> None:
    log = EventLog()
    log.emit(Trouble("a", "", False))

    async def read(after: int) -> list[int]:
        return [numbered.seq async for numbered in log.follow(after)]

    early, late = asyncio.create_task(read(0)), asyncio.create_task(read(1))
    await asyncio.sleep(0)
    log.emit(Content("x"))
    log.emit(DONE)
    assert await early == [1, 2, 3]
    assert await late == [2, 3]


async def test_nothing_is_taken_after_done() -> None:
    log = EventLog()
    log.emit(DONE)
    log.emit(Content("late"))
    assert log.last_seq == 1


def test_three_modes_are_shipped_and_conversation_never_thinks() -> None:
    catalog = Catalog.load()
    assert [mode.slug for mode in catalog.enabled()] == ["conversation", "recherche", "code"]
    assert catalog.get("conversation").config is None
    assert catalog.get("conversation").display_template == "default"


@pytest.mark.parametrize(
    ("message", "slug"),
    [
        ("Compare les pompes à chaleur", "recherche"),
        ("J'ai un bug dans ma fonction Python", "code"),
        ("Bonjour", None),
        ("Compare ce code", None),
    ],
)
def test_a_mode_is_detected_only_when_one_is_clearly_ahead(message: str, slug: str | None) -> None:
    mode = Catalog.load().detect(message)
    assert (mode.slug if mode else None) == slug


@pytest.mark.parametrize(
    "config",
    [
        {"max_depth": 9},
        {"complexity_threshold": 0},
        {"enable_critique": "yes"},
        {"unknown": 1},
        {"model_override": "huge"},
    ],
)
def test_a_configuration_out_of_bounds_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ChainConfig.model_validate(config)


def test_a_file_of_modes_that_is_wrong_names_the_mode_and_the_field(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "modes.yaml"
    path.write_text(
        "- {slug: x, icon: i, name: {fr: X, en: X}, keywords: [], thinking_schema: spiral, discovery: true}"
    )
    with pytest.raises(BadModes, match=r"x: thinking_schema"):
        Catalog.load(path)
