"""Identity: only a token that is right in every respect is believed (FAULTS 21, 33)."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, OKPKey

from kit.identity import (
    LIFETIME_SECONDS,
    Caller,
    Forbidden,
    NotVerified,
    Signer,
    Verifier,
    authorize,
    bearer,
    for_run,
)
from kit.settings import BadSetting
from tests.servers.identity import ADMIN, USER, keys, private_key, public_key

NOW = 1_790_000_000
KEYS = keys()


def _verifier(now: float = NOW, audience: str = "engine", public: str = KEYS.public) -> Verifier:
    return Verifier(public, audience, clock=lambda: now)


def _signer(internal_key: str = KEYS.gateway, now: float = NOW) -> Signer:
    return Signer(internal_key, clock=lambda: now)


def _encode(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def _claims(**changed: Any) -> dict[str, Any]:
    claims = {"iss": "gateway", "aud": "engine", "sub": "user-1", "iat": NOW, "exp": NOW + 60, **changed}
    return {name: value for name, value in claims.items() if value is not None}


def _token(kid: Any = "gateway", internal_key: str = KEYS.gateway, **changed: Any) -> str:
    """A token with some claims changed (None: left out), rightly signed."""
    seed = base64.b64decode(internal_key.partition(":")[2])
    public = base64.b64decode(public_key(internal_key).partition(":")[2])
    key = OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": _encode(public), "d": _encode(seed)})
    header = {"alg": "Ed25519"} if kid is None else {"alg": "Ed25519", "kid": kid}
    return jwt.encode(header, _claims(**changed), key, algorithms=["Ed25519"])


def _assert_refused(token: str, verifier: Verifier | None = None) -> None:
    with pytest.raises(NotVerified) as refused:
        (verifier or _verifier()).verify(token)
    assert token == "" or token not in str(refused.value)


def test_a_token_carries_the_whole_caller() -> None:
    caller = for_run(replace(USER, roles=frozenset({"user", "admin"})), "run-1")
    assert _verifier().verify(_signer().mint("engine", caller)) == replace(caller, actor="gateway")


def test_a_token_with_its_least_claims_is_believed() -> None:
    assert _verifier().verify(_token()) == Caller(user="user-1", actor="gateway")


def test_an_expired_token_is_refused() -> None:
    _assert_refused(_signer().mint("engine", USER), _verifier(NOW + LIFETIME_SECONDS + 6))


def test_a_token_lives_ten_minutes() -> None:
    assert _verifier(NOW + 599).verify(_signer().mint("engine", USER)).user == USER.user


def test_a_token_from_the_future_is_refused() -> None:
    _assert_refused(_token(iat=NOW + 60, exp=NOW + 120))


def test_a_token_that_is_not_valid_yet_is_refused() -> None:
    _assert_refused(_token(nbf=NOW + 60))


def test_clocks_may_be_a_few_seconds_apart() -> None:
    assert _verifier(NOW - 4).verify(_token(nbf=NOW)).user == "user-1"


def test_a_token_for_another_service_is_refused() -> None:
    _assert_refused(_signer().mint("treestore", USER))


def test_a_token_of_a_key_nobody_knows_is_refused() -> None:
    _assert_refused(_signer(keys().gateway).mint("engine", USER))


def test_a_token_of_a_holder_nobody_knows_is_refused() -> None:
    _assert_refused(_signer(private_key("planner")).mint("engine", USER))


def test_one_holder_s_key_does_not_speak_for_another_holder() -> None:
    _assert_refused(_token(kid="engine", iss="engine"))


def test_a_token_whose_issuer_is_not_its_key_s_holder_is_refused() -> None:
    _assert_refused(_token(iss="engine"))


@pytest.mark.parametrize("kid", [None, "", "../gateway", 7, ["gateway"]])
def test_a_token_without_the_name_of_a_known_key_is_refused(kid: Any) -> None:
    header = {"alg": "Ed25519", "kid": kid}
    good = _token().split(".")
    _assert_refused(".".join([_encode(json.dumps(header).encode()), *good[1:]]))


@pytest.mark.parametrize("claim", ["sub", "aud", "exp", "iat", "iss"])
def test_a_token_that_lacks_a_claim_is_refused(claim: str) -> None:
    missing: dict[str, Any] = {claim: None}
    _assert_refused(_token(**missing))


@pytest.mark.parametrize("claim", ["exp", "iat", "nbf"])
@pytest.mark.parametrize("value", ["soon", True, [], {"a": 1}])
def test_a_token_with_a_time_that_is_none_is_refused(claim: str, value: Any) -> None:
    changed: dict[str, Any] = {claim: value}
    _assert_refused(_token(**changed))


@pytest.mark.parametrize("value", ["", 7, [], None, {"a": 1}])
def test_a_token_without_a_user_s_name_is_refused(value: Any) -> None:
    _assert_refused(_token(sub=value))


@pytest.mark.parametrize("value", ["admin", 7, {"admin": True}, [["admin"]]])
def test_roles_that_are_no_list_of_names_are_refused(value: Any) -> None:
    _assert_refused(_token(roles=value))


def test_a_token_without_a_signature_is_refused() -> None:
    header = _encode(json.dumps({"alg": "none", "kid": "gateway"}).encode())
    _assert_refused(f"{header}.{_encode(json.dumps(_claims()).encode())}.")


def test_a_public_key_is_no_password() -> None:
    public = base64.b64decode(public_key(KEYS.gateway).partition(":")[2])
    for secret in (public, base64.b64encode(public), KEYS.public.encode()):
        key = OctKey.import_key(secret)
        _assert_refused(jwt.encode({"alg": "HS256", "kid": "gateway"}, _claims(), key, algorithms=["HS256"]))


def test_a_token_whose_claims_were_changed_is_refused() -> None:
    header, _, signature = _token().split(".")
    _assert_refused(f"{header}.{_encode(json.dumps(_claims(sub='user-2')).encode())}.{signature}")


@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        "..",
        "a.b.c",
        "é.è.à",
        "a" * 100_000,
        f"{_encode(b'[]')}.{_encode(b'[]')}.x",
        f"{_encode(b'1')}.{_encode(b'1')}.x",
        f"{_encode(b'{}')}.{_encode(b'{}')}.{_encode(b'x')}",
        f"{_encode(b'[' * 10_000)}.{_encode(b'{}')}.x",
    ],
)
def test_garbage_is_refused(token: str) -> None:
    _assert_refused(token)


def test_claims_that_are_no_object_are_refused() -> None:
    seed = base64.b64decode(KEYS.gateway.partition(":")[2])
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    for payload in (b"[]", b"7", b"null", b"not json", b'"gateway"'):
        signed = f"{_encode(json.dumps({'alg': 'Ed25519', 'kid': 'gateway'}).encode())}.{_encode(payload)}"
        signature = Ed25519PrivateKey.from_private_bytes(seed).sign(signed.encode())
        _assert_refused(f"{signed}.{_encode(signature)}")


def test_a_token_is_used_again_until_half_its_life_is_over() -> None:
    now = [float(NOW)]
    signer = Signer(KEYS.gateway, clock=lambda: now[0])
    first = signer.mint("engine", USER)
    now[0] += LIFETIME_SECONDS / 2 - 1
    assert signer.mint("engine", USER) == first
    now[0] += 2
    assert signer.mint("engine", USER) != first


def test_tokens_of_two_callers_or_services_are_not_mixed_up() -> None:
    signer = _signer()
    tokens = {signer.mint("engine", USER), signer.mint("engine", for_run(USER, "run-1")), signer.mint("quota", USER)}
    assert len(tokens) == 3


def test_a_user_s_token_is_not_for_a_service_s_call() -> None:
    caller = _verifier().verify(_signer().mint("engine", ADMIN))
    with pytest.raises(Forbidden):
        authorize(caller, "service")


def test_a_service_s_token_is_for_a_service_s_call_and_a_user_s() -> None:
    caller = _verifier().verify(_signer(KEYS.engine).mint("engine", USER))
    authorize(caller, "service")
    authorize(caller, "user")


def test_an_admin_s_call_needs_the_role() -> None:
    authorize(ADMIN, "admin")
    with pytest.raises(Forbidden):
        authorize(USER, "admin")


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic dTpw", "token"])
def test_without_a_bearer_token_nobody_is_verified(header: str) -> None:
    with pytest.raises(NotVerified):
        bearer({"authorization": header})


def test_the_word_bearer_may_be_written_in_any_case() -> None:
    assert bearer({"authorization": "bearer x.y.z"}) == "x.y.z"


@pytest.mark.parametrize("text", ["", "engine", "engine:", "engine:eA==", "engine:é", ":eA==", "engine:secret-word!"])
def test_a_key_that_is_none_is_named_by_its_setting_and_not_quoted(text: str) -> None:
    for build in (Signer, lambda value: Verifier(value, "engine")):
        with pytest.raises(BadSetting) as refused:
            build(text)
        assert str(refused.value).startswith("LINTELLO_INTERNAL_")
        assert "secret-word" not in str(refused.value)


def test_by_default_the_time_is_now() -> None:
    token = Signer(KEYS.gateway).mint("engine", USER)
    caller = Verifier(KEYS.public, "engine").verify(token)
    assert caller.user == USER.user
