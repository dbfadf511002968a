"""What the outside sees of a refusal."""

import grpc
import orjson
import pytest
from lintello.common.v1 import reason_pb2

from gateway.problems import REASONS, remote_problem
from kit.errors import RemoteError

Code = grpc.StatusCode


def test_every_reason_has_words_of_its_own_in_each_language() -> None:
    for language in ("fr", "en"):
        titles = [getattr(kind, language) for kind in REASONS.values()]
        assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (Code.INVALID_ARGUMENT, "INVALID_ARGUMENT", 400),
        (Code.NOT_FOUND, "NOT_FOUND", 404),
        (Code.FAILED_PRECONDITION, "RUN_IN_PROGRESS", 409),
        (Code.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED", 409),
        (Code.OUT_OF_RANGE, "SEQUENCE_AHEAD", 409),
        (Code.FAILED_PRECONDITION, "EVENTS_EXPIRED", 410),
        (Code.RESOURCE_EXHAUSTED, "TOO_LARGE", 413),
        (Code.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", 429),
        (Code.PERMISSION_DENIED, "FORBIDDEN", 403),
        (Code.UNAVAILABLE, "UNAVAILABLE", 503),
        (Code.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", 503),
        (Code.DATA_LOSS, "DATA_LOSS", 500),
        (Code.INTERNAL, "INTERNAL", 500),
        (Code.UNKNOWN, "UNKNOWN", 500),
        (Code.UNIMPLEMENTED, "UNIMPLEMENTED", 500),
    ],
)
def test_a_code_and_a_reason_have_one_status(code: grpc.StatusCode, reason: str, status: int) -> None:
    assert remote_problem(RemoteError(code, reason, ""), "fr").status_code == status


def test_every_reason_of_the_wire_has_a_row() -> None:
    names = {name.removeprefix("REASON_") for name in reason_pb2.Reason.keys()} - {"UNSPECIFIED"}  # noqa: SIM118
    assert names - set(REASONS) == set()


def test_a_refused_internal_token_is_our_fault_and_not_the_users() -> None:
    assert remote_problem(RemoteError(Code.UNAUTHENTICATED, "UNAUTHENTICATED", ""), "fr").status_code == 500


def test_fields_are_named() -> None:
    error = RemoteError(Code.INVALID_ARGUMENT, "INVALID_ARGUMENT", "title: too long", {"title": "too long"})
    document = orjson.loads(bytes(remote_problem(error, "en").body))
    assert document["errors"] == [{"field": "title", "message": "too long"}]


def test_what_a_service_says_of_its_own_faults_stays_inside() -> None:
    error = RemoteError(Code.UNAVAILABLE, "UNAVAILABLE", "failed to connect to 10.0.0.7:50051")
    assert b"10.0.0.7" not in remote_problem(error, "en").body


def test_a_wait_that_was_asked_for_is_passed_on() -> None:
    error = RemoteError(Code.RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED", "", retry_after=61.4)
    assert remote_problem(error, "fr").headers["retry-after"] == "61"


def test_unavailable_says_when_to_come_back() -> None:
    assert "retry-after" in remote_problem(RemoteError(Code.UNAVAILABLE, "UNAVAILABLE", ""), "fr").headers


def test_a_problem_may_name_its_run() -> None:
    document = orjson.loads(bytes(remote_problem(RemoteError(Code.UNAVAILABLE, "", ""), "fr", run_id="r").body))
    assert document["run_id"] == "r"


def test_titles_are_in_the_language_asked_for() -> None:
    error = RemoteError(Code.NOT_FOUND, "NOT_FOUND", "")
    titles = [orjson.loads(bytes(remote_problem(error, locale).body))["title"] for locale in ("fr", "en")]
    assert titles == ["Introuvable", "Not found"]
