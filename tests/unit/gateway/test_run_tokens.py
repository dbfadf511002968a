"""One-run tokens."""

import pytest

from gateway.run_tokens import RunTokens
from kit.identity import Caller, NotVerified, Verifier
from tests.servers.identity import Keys, keys

ADA = Caller("ada", "pro", frozenset({"admin"}), actor="gateway", run_id="other")
NOW = 1_800_000_000.0


@pytest.fixture(scope="module")
def identity() -> Keys:
    return keys()


def at(seconds: float, identity: Keys) -> RunTokens:
    return RunTokens(identity.gateway, lambda: NOW + seconds)


def test_it_names_its_user_and_no_role(identity: Keys) -> None:
    assert at(0, identity).verify(at(0, identity).mint("run", ADA), "run") == Caller("ada", "pro")


def test_it_is_for_one_run(identity: Keys) -> None:
    with pytest.raises(NotVerified):
        at(0, identity).verify(at(0, identity).mint("run", ADA), "another")


@pytest.mark.parametrize(("seconds", "taken"), [(2 * 3600 - 1, True), (2 * 3600 + 10, False)])
def test_it_is_good_for_two_hours(identity: Keys, seconds: float, taken: bool) -> None:
    token = at(0, identity).mint("run", ADA)
    if taken:
        at(seconds, identity).verify(token, "run")
    else:
        with pytest.raises(NotVerified):
            at(seconds, identity).verify(token, "run")


def test_one_of_another_house_is_none(identity: Keys) -> None:
    with pytest.raises(NotVerified):
        at(0, identity).verify(at(0, keys()).mint("run", ADA), "run")


@pytest.mark.parametrize("audience", ["engine", "treestore", "quota"])
def test_no_service_takes_it(identity: Keys, audience: str) -> None:
    with pytest.raises(NotVerified):
        Verifier(identity.public, audience, lambda: NOW).verify(at(0, identity).mint("run", ADA))


def test_what_is_for_a_service_is_none(identity: Keys) -> None:
    token = identity.gateway_signer.mint("engine", ADA)
    with pytest.raises(NotVerified):
        RunTokens(identity.gateway).verify(token, "other")
