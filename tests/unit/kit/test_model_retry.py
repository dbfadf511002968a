"""When a failed model call is tried again."""

import pytest

from kit.model.errors import ModelError, ModelErrorReason
from kit.model.retry import RetryPolicy, parse_retry_after, reason_of

NOW = 1_764_500_000.0  # Sun, 30 Nov 2025 10:53:20 GMT
POLICY = RetryPolicy(max_attempts=9, max_wait=30, random=lambda: 0.0)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("1.5", 1.5),
        ("Sun, 30 Nov 2025 10:53:32 GMT", 12.0),
        ("Sun, 30 Nov 2025 10:53:12 GMT", None),
        ("-3", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("9" * 400, None),
        ("٣", None),
        ("Sun, 99 Nov 2025 10:53:12 GMT", None),
        ("", None),
        (None, None),
    ],
)
def test_a_retry_after_header_is_read(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (429, ModelErrorReason.RATE_LIMITED),
        *((status, ModelErrorReason.UNAVAILABLE) for status in (408, 409, 425, 500, 502, 503, 504, 529)),
        *((status, ModelErrorReason.REFUSED) for status in (301, 400, 401, 403, 404, 413, 422)),
    ],
)
def test_a_status_has_a_reason(status: int, reason: ModelErrorReason) -> None:
    assert reason_of(status) is reason


@pytest.mark.parametrize("reason", ModelErrorReason)
def test_only_a_refusal_is_not_worth_another_model(reason: ModelErrorReason) -> None:
    assert ModelError(reason, "x").retryable is (reason is not ModelErrorReason.REFUSED)


def test_backoff_doubles_up_to_four_seconds() -> None:
    failures: list[ModelError] = []
    waits = []
    for _ in range(5):
        failures.append(ModelError(ModelErrorReason.UNAVAILABLE, "x", status=500))
        waits.append(POLICY.wait(failures))
    assert waits == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_jitter_takes_away_up_to_half() -> None:
    policy = RetryPolicy(max_attempts=2, max_wait=30, random=lambda: 1.0)
    assert policy.wait([ModelError(ModelErrorReason.UNAVAILABLE, "x")]) == 0.25


def test_a_retry_after_of_the_longest_wait_is_obeyed() -> None:
    assert POLICY.wait([ModelError(ModelErrorReason.RATE_LIMITED, "x", retry_after=30.0)]) == 30.0


def test_a_longer_retry_after_is_not_waited_for() -> None:
    assert POLICY.wait([ModelError(ModelErrorReason.RATE_LIMITED, "x", retry_after=30.1)]) is None


@pytest.mark.parametrize(
    "error",
    [
        ModelError(ModelErrorReason.REFUSED, "x", status=400),
        ModelError(ModelErrorReason.TIMEOUT, "x"),
        ModelError(ModelErrorReason.UNAVAILABLE, "x", status=409),
    ],
)
def test_what_waiting_does_not_mend_is_not_tried_again(error: ModelError) -> None:
    assert POLICY.wait([error]) is None


def test_nonsense_is_tried_again_once() -> None:
    nonsense = ModelError(ModelErrorReason.MALFORMED, "x")
    assert POLICY.wait([nonsense]) is not None
    assert POLICY.wait([nonsense, nonsense]) is None
