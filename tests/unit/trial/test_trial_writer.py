"""What the trial model writes: the question's own words, the right shape for each role, an honest last line."""

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.trial.completion import count_tokens
from cli.trial.reading import read
from cli.trial.roles import Asked, Role
from cli.trial.schema import value_for
from cli.trial.texts import texts
from cli.trial.writer import plan, write

DEMO = "Compare trois façons de financer une coopérative, avec budget et étapes"
QUESTIONS = [
    DEMO,
    "C'est quoi le SEO ?",
    "Écris une fonction Python qui supprime les doublons d'une liste sans changer l'ordre",
    "Nous sommes une association de 12 bénévoles. Comment organiser un festival avec 5000 euros ?",
    "Rédige un mail à mon propriétaire pour demander une réparation",
    "Suggest 5 strategies to keep volunteers in a choir, with risks",
    "Should I learn Rust or Go for a command-line tool?",
    "Why is my sourdough bread so dense?",
    "How do I plan a wedding for 80 guests in six months, with a budget of $15,000?",
]


def steps_of(question: str, max_steps: int = 4) -> list[dict[str, str]]:
    steps: list[dict[str, str]] = json.loads(write(Asked("decompose", question, max_steps=max_steps)))["steps"]
    return steps


def chain(question: str) -> list[str]:
    steps = [f"{step['title']}\n{step['goal']}" for step in steps_of(question)]
    return [
        write(Asked("decompose", question)),
        *(write(Asked("execute", question, step=step)) for step in steps),
        write(Asked("critique", question)),
        write(Asked("synthesize", question)),
    ]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_cut_into_three_or_four_short_steps(question: str) -> None:
    steps = steps_of(question)
    assert 3 <= len(steps) <= 4
    assert all(0 < len(step["title"].split()) <= 12 and step["goal"] for step in steps)


def test_two_steps_at_most_gives_two() -> None:
    assert len(steps_of(DEMO, max_steps=2)) == 2


def test_the_steps_fit_what_the_question_asks_for() -> None:
    assert plan(read(DEMO), 4) == ["options", "budget", "steps", "decide"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_step_opens_with_a_summary_line_and_works_in_its_own_words(question: str) -> None:
    works = [write(Asked("execute", question, step=step["title"])) for step in steps_of(question)]
    for summary, empty, body in (work.split("\n", 2) for work in works):
        assert len(summary) <= 120
        assert empty == ""
        assert 50 <= len(body.split()) <= 90
    assert len(set(works)) == len(works)


def test_an_unknown_step_is_worked_on_by_its_own_words() -> None:
    assert "Nourrir les poules" in write(Asked("execute", DEMO, step="Nourrir les poules"))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_critique_has_one_or_two_points(question: str) -> None:
    verdict = json.loads(write(Asked("critique", question)))
    assert verdict["satisfied"] is False
    assert 1 <= len(verdict["weaknesses"]) <= 2
    assert len(verdict["summary"]) <= 120


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_synthesis_has_headings_and_a_list_within_its_length(question: str) -> None:
    answer = write(Asked("synthesize", question))
    assert answer.count("\n## ") >= 3
    assert "\n1. " in answer
    assert 130 <= len(answer.split()) <= 240


def test_a_comparison_is_a_table_with_a_row_for_each_way() -> None:
    rows = [line for line in write(Asked("synthesize", DEMO)).splitlines() if line.startswith("| **")]
    assert len(rows) == 3


def test_named_choices_become_the_columns_of_the_table() -> None:
    assert "| Critère | Python | Rust |" in write(Asked("synthesize", "Compare Python et Rust pour un outil"))


@pytest.mark.parametrize("role", ["synthesize", "conversation"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_answer_ends_with_the_line_that_says_it_is_a_trial(role: Role, question: str) -> None:
    last = write(Asked(role, question)).splitlines()[-1]
    assert last.startswith("*")
    assert last.endswith("*")
    assert "`LINTELLO_LLM_BASE_URL`" in last
    assert "`LINTELLO_LLM_API_KEY`" in last


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_classic_answer_stays_short(question: str) -> None:
    assert 60 <= len(write(Asked("conversation", question)).split()) <= 125


def test_a_question_that_refers_back_is_answered_with_the_one_before() -> None:
    answer = write(Asked("conversation", "Et pour un budget plus petit ?", earlier=("Comment lancer une chorale ?",)))
    assert "lancer une chorale" in answer


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_whole_chain_takes_fifteen_to_twenty_five_seconds_at_the_usual_pace(question: str) -> None:
    assert 15 * 40 <= sum(map(count_tokens, chain(question))) <= 25 * 40


@pytest.mark.parametrize(
    ("question", "locale"), [(question, "fr" if rank < 5 else "en") for rank, question in enumerate(QUESTIONS)]
)
def test_the_answer_is_in_the_language_of_the_question(question: str, locale: str) -> None:
    assert read(question).locale == locale


def test_a_question_without_a_language_follows_its_prompt() -> None:
    assert [read("SEO ?", english_prompt=english).locale for english in (False, True)] == ["fr", "en"]


def test_the_same_question_gets_the_same_answer() -> None:
    assert write(Asked("conversation", "Parlons du jardin")) == write(Asked("conversation", "Parlons du jardin"))


@pytest.mark.parametrize(("question", "digit"), [("C'est quoi le SEO ?", "1"), (DEMO, "4")])
def test_the_classifier_answers_with_a_digit(question: str, digit: str) -> None:
    assert write(Asked("classify", question)) == digit


def test_the_languages_hold_the_same_material() -> None:
    def shape(value: object) -> object:
        return {key: shape(each) for key, each in value.items()} if isinstance(value, dict) else type(value)

    assert {key: shape(value) for key, value in texts("fr").items() if key != "reading"} == {
        key: shape(value) for key, value in texts("en").items() if key != "reading"
    }


@given(
    question=st.text(max_size=300),
    role=st.sampled_from(["decompose", "execute", "critique", "synthesize", "classify", "structured", "conversation"]),
)
def test_no_question_leaves_the_trial_model_speechless(question: str, role: Role) -> None:
    ask = Asked(role, question, step=question, earlier=(question,))
    assert write(ask)
    assert write(replace(ask, english_prompt=True))


def test_a_schema_is_walked_into_a_value_that_fits() -> None:
    schema = {
        "type": "object",
        "required": ["scores", "verdict", "best"],
        "properties": {
            "scores": {"type": "array", "minItems": 3, "items": {"$ref": "#/$defs/score"}},
            "verdict": {"enum": ["keep", "drop"]},
            "best": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "null"}]},
            "optional": {"type": "string"},
        },
        "$defs": {"score": {"type": "number", "minimum": 0, "maximum": 0.4}},
    }
    words = itertools.cycle(["financer une coopérative"])
    assert value_for(schema, words) == {"scores": [0.4, 0.4, 0.4], "verdict": "keep", "best": "finan"}


@pytest.mark.parametrize("word", ["12 345 ", "avec , et ", "what does ", "\n"])
def test_an_endless_question_changes_nothing_after_its_beginning(word: str) -> None:
    assert read(word * 5000).topic == read(word * 9000).topic
