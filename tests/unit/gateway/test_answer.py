"""An answer gathered from its events."""

from typing import Any

from gateway.answer import AnswerBuilder

DONE = {
    "type": "done",
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
    assert not answer.is_empty
    assert answer.as_json()["notices"] == [{"code": "unavailable", "message": "…", "retryable": True}]


def test_an_error_without_an_answer_is_an_empty_answer() -> None:
    answer = gathered(STARTED, ERROR, DONE | {"message_id": None})
    assert (answer.is_empty, answer.error_code) == (True, "unavailable")


def test_events_that_break_off_are_an_empty_answer() -> None:
    answer = gathered(STARTED, {"type": "content", "content": "a"})
    assert (answer.is_empty, answer.error_code) == (True, "unavailable")
