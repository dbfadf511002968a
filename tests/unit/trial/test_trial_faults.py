"""Which rule applies to which call, and what a wrong rule says."""

import pytest

from cli.trial.faults import NO_FAULT, Faults, InvalidRule


def statuses(faults: Faults, *calls: tuple[str, bool]) -> list[int | None]:
    return [faults.action_for(role, streamed).status for role, streamed in calls]


def test_rules_are_used_up_in_order() -> None:
    faults = Faults()
    faults.replace([{"times": 2, "action": {"status": 500}}, {"action": {"status": 429}}])
    assert statuses(faults, *[("execute", False)] * 4) == [500, 500, 429, None]


def test_a_rule_waits_for_its_role_and_kind_of_answer() -> None:
    faults = Faults()
    faults.replace([{"match": {"role": "execute", "stream": True}, "action": {"status": 500}}])
    calls = [("execute", False), ("critique", True), ("execute", True)]
    assert statuses(faults, *calls) == [None, None, 500]


def test_nth_counts_the_calls_that_fit() -> None:
    faults = Faults()
    faults.replace([{"match": {"role": "execute", "nth": 2}, "action": {"status": 500}}])
    calls = [("execute", False), ("decompose", False), ("execute", False), ("execute", False)]
    assert statuses(faults, *calls) == [None, None, 500, None]


def test_cleared_faults_are_gone() -> None:
    faults = Faults()
    faults.replace([{"action": {"status": 500}}])
    faults.clear()
    assert faults.action_for("execute", False) is NO_FAULT


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"action": {"statuss": 500}}, r"\[0\].action.statuss"),
        ({"action": {"hang": "later"}}, r"\[0\].action.hang"),
        ({"action": {"delay_ms": "5"}}, r"\[0\].action.delay_ms"),
        ({"action": {"status": True}}, r"\[0\].action.status"),
        ({"action": {"chunks": [1]}}, r"\[0\].action.chunks"),
        ({"match": {"role": "poet"}}, r"\[0\].match.role"),
        ({"times": 0}, r"\[0\].times"),
        ("rule", r"\[0\] must be an object"),
    ],
)
def test_a_wrong_rule_is_named(rule: object, named: str) -> None:
    with pytest.raises(InvalidRule, match=named):
        Faults().replace([rule])
