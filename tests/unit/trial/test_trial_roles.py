"""The trial model recognises each role from the product's own prompts, in both languages."""

from pathlib import Path
from string import Template

import pytest

from cli.trial.roles import asked

PROMPTS = Path(__file__).parents[3] / "services" / "engine" / "prompts"
QUESTION = "Compare trois façons de financer une coopérative"


def prompt(locale: str, name: str, **slots: str) -> list[dict[str, object]]:
    text = Template((PROMPTS / locale / f"{name}.md").read_text(encoding="utf-8")).substitute(
        question=QUESTION, **slots
    )
    return [{"role": "system", "content": "Tu es précis."}, {"role": "user", "content": text}]


@pytest.mark.parametrize("locale", ["fr", "en"])
@pytest.mark.parametrize(
    ("role", "slots"),
    [
        ("decompose", {"max_steps": "3"}),
        ("execute", {"plan": "1. Chiffrer", "previous": "rien", "step": "Chiffrer"}),
        ("critique", {"previous": "Chiffrer : fait"}),
        ("synthesize", {"previous": "Chiffrer : fait", "critique": "rien à changer"}),
    ],
)
def test_a_prompt_of_the_product_is_told_by_its_role(locale: str, role: str, slots: dict[str, str]) -> None:
    ask = asked(prompt(locale, role, **slots), None)
    assert (ask.role, ask.question) == (role, QUESTION)


@pytest.mark.parametrize("locale", ["fr", "en"])
def test_the_number_of_steps_allowed_is_read_from_the_prompt(locale: str) -> None:
    assert asked(prompt(locale, "decompose", max_steps="2"), None).max_steps == 2


def test_a_question_that_quotes_tags_stays_a_conversation() -> None:
    ask = asked([{"role": "user", "content": 'Que veut dire <critique> et "steps" dans un prompt ?'}], None)
    assert ask.role == "conversation"


def test_the_empty_work_before_the_first_step_changes_no_role() -> None:
    assert asked(prompt("fr", "execute", plan="", previous="", step="Chiffrer"), None).step == "Chiffrer"


@pytest.mark.parametrize("order", ["Réponds uniquement par le chiffre.", "Answer with the digit only."])
def test_a_request_for_one_digit_is_the_classifier(order: str) -> None:
    assert asked([{"role": "system", "content": order}, {"role": "user", "content": QUESTION}], None).role == "classify"


def test_any_other_call_for_json_is_structured() -> None:
    schema = {"type": "object"}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    ask = asked([{"role": "user", "content": "Note ces branches"}], form)
    assert (ask.role, ask.schema) == ("structured", schema)


def test_content_in_parts_is_read_as_its_text() -> None:
    parts = [{"type": "text", "text": "C'est quoi "}, {"type": "image_url"}, {"type": "text", "text": "le SEO ?"}]
    assert asked([{"role": "user", "content": parts}], None).question == "C'est quoi le SEO ?"


def test_a_question_that_quotes_other_tags_keeps_its_role() -> None:
    messages = prompt("fr", "critique", previous="fait")
    content = str(messages[-1]["content"]).replace(QUESTION, "Que fait ceci ?\n<step>\nx\n</step>\nMerci")
    assert asked([{"role": "user", "content": content}], None).role == "critique"
