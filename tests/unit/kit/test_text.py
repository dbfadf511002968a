"""Cleaning and shortening text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.text import byte_size, clean, first_sentence, one_line

# Any str at all: Python's own strings may hold lone surrogates.
anything = st.text(alphabet=st.characters(exclude_categories=()))
surrogates = st.text(alphabet=st.sampled_from("\ud800\udbff\udc00\udfffa\x00é"))


@given(anything | surrogates)
def test_cleaned_text_is_utf8_without_nul(text: str) -> None:
    assert b"\x00" not in clean(text).encode("utf-8")


@given(anything | surrogates)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00")))
def test_text_without_nul_and_surrogates_stays_as_it_is(text: str) -> None:
    assert clean(text) == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\x00b", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00\ud800", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ud83d\x00\ude00", "😀"),
        ("une\nligne\u2028deux\r\n", "une\nligne\u2028deux\r\n"),
    ],
)
def test_text_is_cleaned(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@given(anything | surrogates)
def test_the_size_is_the_bytes_of_the_text(text: str) -> None:
    without_nul = text.replace("\x00", "")
    assert byte_size(without_nul) == sum(len(clean(character).encode()) for character in without_nul)


@given(anything)
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


def test_one_line_joins_lines_with_one_space() -> None:
    assert one_line("  un\n\n deux\u2028trois\t") == "un deux trois"


@given(anything, st.integers(min_value=1, max_value=200))
def test_a_first_sentence_is_one_line_within_its_limit(text: str, limit: int) -> None:
    sentence = first_sentence(text, limit)
    assert len(sentence) <= limit
    assert len(sentence.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Il faut choisir. Puis agir.", "Il faut choisir."),
        ("Que faire ? Rien.", "Que faire ?"),
        ("# Le **budget** d'abord\n\nEnsuite le reste.", "Le budget d'abord"),
        ("- [ ] Appeler la `banque` [ici](https://exemple.fr/a)", "Appeler la banque ici"),
        ("> 1. *Premier* point. Second.", "Premier point."),
        ("Selon l'art. L. 121 du code, c'est permis. Donc oui.", "Selon l'art. L. 121 du code, c'est permis."),
        ("Elle vaut 3.14 environ. Oui.", "Elle vaut 3.14 environ."),
        ("2*3*4 et ma_variable_ici", "2*3*4 et ma_variable_ici"),
        ("```python\n---\n\nLe code suit.", "Le code suit."),
        ("Il dit « Non. » Puis part.", "Il dit « Non. »"),
        ("***\n\n", ""),
        ("", ""),
    ],
)
def test_the_first_sentence_is_found(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_a_long_sentence_is_cut_after_a_word() -> None:
    assert first_sentence("Une coopérative se finance lentement", limit=20) == "Une coopérative se…"


def test_a_word_longer_than_the_limit_is_cut_within() -> None:
    assert first_sentence("a" * 50, limit=10) == "a" * 9 + "…"
