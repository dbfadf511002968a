"""Deadlines: what is left for a callee."""

import time
from collections.abc import Iterator

import pytest

from kit.deadline import MARGIN_SECONDS, budget, deadline


@pytest.fixture(autouse=True)
def nothing_set() -> Iterator[None]:
    """No call is being served."""
    token = deadline.set(None)
    yield
    deadline.reset(token)


def test_without_a_deadline_a_call_has_its_own_time() -> None:
    assert budget(5) == 5


def test_a_callee_gets_the_caller_s_time_less_the_margin() -> None:
    deadline.set(time.monotonic() + 10)
    assert 9 < budget(60) <= 10 - MARGIN_SECONDS


def test_a_shorter_time_of_its_own_counts() -> None:
    deadline.set(time.monotonic() + 10)
    assert budget(5) == 5


def test_when_the_time_is_over_nothing_is_left() -> None:
    deadline.set(time.monotonic() - 1)
    assert budget(5) == 0
