"""Reasoning is cut out of answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.model.reasoning import ReasoningFilter, without_reasoning

tags = ["<think>", "</think>", "<Thinking>", "</THINKING>", "[THINK]", "[/think]", "<reasoning>", "</reasoning>"]
fragments = [*tags, "<", "[", "</", "<thi", "nk>", "ink]", "\n", " ", "ſ", "\u212a", "réponse", "<b>", "[1]"]
texts = st.lists(st.sampled_from(fragments) | st.text(max_size=5), max_size=12).map("".join)


def filtered(*pieces: str) -> str:
    answer = ReasoningFilter()
    return "".join([answer.feed(piece) for piece in pieces]) + answer.close()


@st.composite
def split_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(min_value=0, max_value=len(text)), max_size=10)))
    return text, [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(split_texts())
def test_any_split_gives_what_the_whole_gives(split: tuple[str, list[str]]) -> None:
    text, pieces = split
    assert filtered(*pieces) == filtered(text)


@given(texts)
def test_each_character_alone_gives_what_the_whole_gives(text: str) -> None:
    assert filtered(*text) == filtered(text)


@given(texts)
def test_only_what_may_begin_a_tag_is_held_back(text: str) -> None:
    answer = ReasoningFilter()
    answer.feed(text)
    held = answer.close()
    assert held == "" or any(tag.lower().startswith(held.lower()) for tag in tags)


@given(st.text(alphabet=st.characters(exclude_characters="<[")))
def test_text_without_tags_passes_at_once(text: str) -> None:
    assert ReasoningFilter().feed(text) == text


CASES = [
    ("<think>a</think>Oui", "Oui"),
    ("<think>\na\n</think>\n\nOui", "Oui"),
    ("<THINK>a</Think>Oui", "Oui"),
    ("<thinking>a</thinking>Oui", "Oui"),
    ("<reasoning>a</reasoning>Oui", "Oui"),
    ("[THINK]a[/THINK]Oui", "Oui"),
    ("<think>a<think>b</think>c</think>Oui", "Oui"),
    ("<think>jamais fermé", ""),
    ("Oui<think>jamais fermé", "Oui"),
    ("Oui <think>a</think> et non", "Oui et non"),
    ("Oui<think>a</think> et non", "Oui et non"),
    ("a < b et <b>gras</b> [1]", "a < b et <b>gras</b> [1]"),
    ("la fin <thin", "la fin <thin"),
    ("<thin\u212a>ce n'est pas une balise", "<thin\u212a>ce n'est pas une balise"),
]


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_a_whole_answer_loses_its_reasoning(text: str, answer: str) -> None:
    assert without_reasoning(text) == answer


@pytest.mark.parametrize(("text", "answer"), CASES)
def test_a_streamed_answer_loses_its_reasoning(text: str, answer: str) -> None:
    assert filtered(*text) == answer


def test_a_whole_answer_loses_everything_before_a_stray_closing_tag() -> None:
    assert without_reasoning("je réfléchis</think>\n\nOui") == "Oui"


def test_a_streamed_answer_loses_a_stray_closing_tag_only() -> None:
    assert filtered("déjà dit</th", "ink>Oui") == "déjà ditOui"
