"""Tokens where no server said how many: estimates that follow what it says elsewhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.model import Message, Usage
from kit.model.tokens import TokenRates

LONG = [Message("system", "s" * 300), Message("user", "u" * 700)]


def test_before_any_report_a_token_is_3_3_characters_and_a_message_4_tokens_more() -> None:
    rates = TokenRates()
    assert (rates.prompt([Message("user", "a" * 33)]), rates.answer(33)) == (14, 10)


def test_after_a_report_estimates_are_as_the_server_counts() -> None:
    rates = TokenRates()
    rates.learn(LONG, 400, Usage(258, 100, estimated=False))
    assert (rates.prompt(LONG), rates.answer(40)) == (258, 10)


def test_prompts_and_answers_are_learned_apart() -> None:
    rates = TokenRates()
    rates.learn(LONG, 400, Usage(508, 100, estimated=False))
    assert (rates.prompt(LONG), rates.answer(40)) == (508, 10)


def test_one_short_report_says_too_little() -> None:
    rates = TokenRates()
    rates.learn([Message("user", "Oui ?")], 3, Usage(9, 3, estimated=False))
    assert (rates.prompt([Message("user", "a" * 33)]), rates.answer(33)) == (14, 10)


def test_a_server_that_changes_its_ways_is_followed() -> None:
    rates = TokenRates()
    for tokens in (250_000, 500_000, 500_000, 500_000, 500_000):
        rates.learn(LONG, 1_000_000, Usage(258, tokens, estimated=False))
    assert rates.answer(1000) == pytest.approx(500, rel=0.1)


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9)), max_size=5))
def test_no_report_makes_an_estimate_absurd(reports: list[tuple[int, int, int]]) -> None:
    rates = TokenRates()
    for characters, prompt, answer in reports:
        rates.learn(LONG, characters, Usage(prompt, answer, estimated=False))
    assert 125 <= rates.answer(1000) <= 1000
    assert 125 <= rates.prompt(LONG) <= 1008
