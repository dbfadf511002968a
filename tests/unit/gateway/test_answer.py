"""An answer gathered from its events."""

from typing import Any

import pytest

from gateway.answer import AnswerBuilder

DONE = {
    "type": "done",
    "run_id": "r",
    "conversation_id": "c",
    "message_id": "m",
    "node_id": "n",
    "model": "m-1",
    "tokens_used": 3,
    "cost_eur": 0.0,
    "partial": False,
    "degraded": None,
}
STARTED = {"type": "run_started", "run_id": "r", "conversation_id": "c"}
ERROR = {"type": "error", "code": "unavailable", "message": "…", "retryable": True}


def gathered(*events: dict[str, Any]) -> AnswerBuilder:
    answer = AnswerBuilder()
    for event in events:
        answer.add(event)
    return answer


def test_pieces_make_one_content() -> None:
    pieces = [{"type": "content", "content": piece} for piece in ("a", "b")]
    assert gathered(STARTED, *pieces, DONE).as_json()["message"] == {"id": "m", "role": "assistant", "content": "ab"}


def test_an_error_beside_an_answer_is_a_notice() -> None:
    answer = gathered(STARTED, {"type": "content", "content": "a"}, ERROR, DONE)
    assert answer.failure is None
    assert answer.as_json()["notices"] == [{"code": "unavailable", "message": "…", "retryable": True}]


@pytest.mark.parametrize(
    ("code", "retryable", "reason"),
    [
        ("unavailable", True, "UNAVAILABLE"),
        ("interrupted", True, "UNAVAILABLE"),
        ("never_heard_of", False, "INTERNAL"),
        ("events_lost", False, "EVENTS_EXPIRED"),
    ],
)
def test_an_error_without_an_answer_is_why_there_is_none(code: str, retryable: bool, reason: str) -> None:
    error = ERROR | {"code": code, "retryable": retryable}
    assert gathered(STARTED, error, DONE | {"message_id": None}).failure == reason


def test_an_end_with_neither_an_answer_nor_an_error_is_a_fault() -> None:
    assert gathered(STARTED, DONE | {"message_id": None}).failure == "INTERNAL"


def test_an_answer_whose_pieces_are_lost_is_not_given_without_them() -> None:
    assert gathered(ERROR | {"code": "events_lost", "retryable": False}, DONE).failure == "EVENTS_EXPIRED"


def test_events_that_break_off_are_no_answer() -> None:
    answer = gathered(STARTED, {"type": "content", "content": "a"})
    assert (answer.is_done, answer.failure) == (False, "UNAVAILABLE")


def test_an_answer_whose_beginning_is_lost_still_says_which_run_it_is() -> None:
    answer = gathered({"type": "content", "content": "a"}, ERROR, DONE).as_json()
    assert (answer["run_id"], answer["conversation_id"]) == ("r", "c")
