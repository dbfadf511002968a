"""Which of an issuer's keys may sign user tokens."""

import base64
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from gateway.jwks import read_key

RSA = RSAKey.generate_key(2048, {"kid": "k"}).as_dict(private=False)
SMALL = rsa.generate_private_key(65537, 1024).public_key().public_numbers()
SMALL_MODULUS = base64.urlsafe_b64encode(SMALL.n.to_bytes(128, "big"))
SMALL_RSA = {"kid": "k", "kty": "RSA", "e": "AQAB", "n": SMALL_MODULUS.rstrip(b"=").decode()}


@pytest.mark.parametrize(
    "entry",
    [
        RSA,
        ECKey.generate_key("P-256", {"kid": "k"}).as_dict(private=False),
        OKPKey.generate_key("Ed25519", {"kid": "k"}).as_dict(private=False),
        {**RSA, "use": "sig"},
    ],
    ids=["RSA", "P-256", "Ed25519", "for signing"],
)
def test_a_signing_key_is_taken_by_its_name(entry: dict[str, Any]) -> None:
    found = read_key(entry)
    assert found is not None
    assert found[0] == "k"


@pytest.mark.parametrize(
    "entry",
    [
        OctKey.generate_key(256, {"kid": "k"}).as_dict(private=True),
        ECKey.generate_key("P-384", {"kid": "k"}).as_dict(private=False),
        OKPKey.generate_key("X25519", {"kid": "k"}).as_dict(private=False),
        SMALL_RSA,
        {**RSA, "use": "enc"},
        {name: value for name, value in RSA.items() if name != "kid"},
        {"kid": "k", "kty": "RSA"},
        {"kid": "k", "kty": "RSA", "n": "!", "e": 3},
        {"kid": "k", "kty": "new"},
        {},
    ],
    ids=[
        "secret",
        "P-384",
        "X25519",
        "small",
        "for encryption",
        "no name",
        "no numbers",
        "odd numbers",
        "new",
        "empty",
    ],
)
def test_any_other_key_is_passed_over(entry: dict[str, Any]) -> None:
    assert read_key(entry) is None
