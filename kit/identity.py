"""Identity between services: short-lived Ed25519 tokens that say who acts, and for whom.

A token is for one service (`aud`). Its key names its holder, so the gateway's key can't speak as the engine.
Source: RFC 7519 (JWT), RFC 8037 (Ed25519), RFC 8693 section 4.1 (`act`).
"""

import base64
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from kit.settings import BadSetting

Access = Literal["user", "service", "admin"]
"""Who may call an RPC: a user through the gateway or another service; a service only; a user with the role admin."""

FRONT = "gateway"
"""The holder whose tokens speak for a user only, never for a service."""

LIFETIME_SECONDS = 600
LEEWAY_SECONDS = 5
KEPT_TOKENS = 1_000
"""How many tokens are remembered: those of the runs that go on. A run has its own, and every call of it the same."""


class NotVerified(Exception):
    """There is no token, or it can't be verified; the text says which and quotes nothing of it."""


class Forbidden(Exception):
    """The token is valid, but the call isn't for its bearer."""


@dataclass(frozen=True)
class Caller:
    """Who a call is made for, and who makes it."""

    user: str
    subscription: str = ""
    roles: frozenset[str] = frozenset()
    actor: str = ""
    """The holder of the key that signed: gateway, engine, …"""
    run_id: str = ""

    @property
    def is_admin(self) -> bool:
        """True when the user has the role admin."""
        return "admin" in self.roles


current: ContextVar[Caller] = ContextVar("caller")
"""The caller of the RPC being served."""


class Signer:
    """Mints internal tokens with one holder's private key; one is used again until half its life is over."""

    def __init__(self, internal_key: str, clock: Callable[[], float] = time.time) -> None:
        """`internal_key` is `holder:base64` of a raw 32-byte Ed25519 seed. Raises BadSetting when it isn't."""
        self.holder, self._key = signing_key(internal_key)
        self._clock = clock
        self._minted: dict[tuple[str, Caller], tuple[float, str]] = {}

    def mint(self, audience: str, caller: Caller) -> str:
        """A token for `audience` that names the user and says that this holder acts for them."""
        now = self._clock()
        known = self._minted.get((audience, caller))
        if known is not None and known[0] > now:
            return known[1]
        if len(self._minted) >= KEPT_TOKENS:
            self._minted.clear()
        claims = {
            "iss": self.holder,
            "aud": audience,
            "sub": caller.user,
            "subscription": caller.subscription,
            "roles": sorted(caller.roles),
            "act": {"sub": self.holder},
            "run_id": caller.run_id,
            "iat": int(now),
            "exp": int(now) + LIFETIME_SECONDS,
        }
        token = jwt.encode({"alg": "Ed25519", "kid": self.holder}, claims, self._key, algorithms=["Ed25519"])
        self._minted[audience, caller] = (now + LIFETIME_SECONDS / 2, token)
        return token


class Verifier:
    """Verifies internal tokens for one service."""

    def __init__(self, public_keys: str, audience: str, clock: Callable[[], float] = time.time) -> None:
        """`public_keys` is `holder:base64,…` of raw 32-byte Ed25519 keys. Raises BadSetting when it isn't."""
        pairs = [_read_key(part, "INTERNAL_PUBLIC_KEYS") for part in public_keys.split(",") if part.strip()]
        if not pairs:
            raise BadSetting("LINTELLO_INTERNAL_PUBLIC_KEYS: is missing")
        self._keys = {holder: _public(key) for holder, key in pairs}
        self._audience = audience
        self._clock = clock
        self._verified: dict[str, tuple[float, Caller]] = {}

    def verify(self, token: str) -> Caller:
        """The caller a token speaks for; one that was verified is known until it expires. Raises NotVerified."""
        known = self._verified.get(token)
        if known is not None and known[0] > self._clock():
            return known[1]
        expires, caller = self._read(token)
        if len(self._verified) >= KEPT_TOKENS:
            self._verified.clear()
        self._verified[token] = (expires, caller)
        return caller

    def _read(self, token: str) -> tuple[float, Caller]:
        try:
            decoded = jwt.decode(token, self._find, algorithms=["Ed25519"])
        except (JoseError, ValueError, KeyError) as error:
            raise NotVerified("the token can't be verified") from error
        claims, holder = decoded.claims, str(decoded.header["kid"])
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY_SECONDS,
            aud={"essential": True, "value": self._audience},
            sub={"essential": True},
            exp={"essential": True},
            iat={"essential": True},
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise NotVerified("the token has expired or is for another service") from error
        roles = claims.get("roles", [])
        if (
            claims.get("iss") != holder
            or not (isinstance(claims["sub"], str) and claims["sub"])
            or not (isinstance(roles, list) and all(isinstance(role, str) for role in roles))
        ):
            raise NotVerified("the token can't be verified")
        caller = Caller(
            user=claims["sub"],
            subscription=str(claims.get("subscription", "")),
            roles=frozenset(roles),
            actor=holder,
            run_id=str(claims.get("run_id", "")),
        )
        return claims["exp"], caller

    def _find(self, unverified: object) -> OKPKey:
        kid = unverified.headers().get("kid")  # type: ignore[attr-defined]
        if not isinstance(kid, str) or kid not in self._keys:
            raise KeyError("kid")
        return self._keys[kid]


def authorize(caller: Caller, access: Access) -> None:
    """Raise Forbidden when this caller may not use an RPC of this access."""
    if access == "service" and caller.actor == FRONT:
        raise Forbidden("this call is for services only")
    if access == "admin" and not caller.is_admin:
        raise Forbidden("this call needs the role admin")


def for_run(caller: Caller, run_id: str) -> Caller:
    """The same caller, acting within one run."""
    return replace(caller, run_id=run_id)


def bearer(metadata: Mapping[str, str]) -> str:
    """The token of an `authorization: Bearer …` entry. Raises NotVerified."""
    scheme, _, token = metadata.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise NotVerified("a token is needed: authorization: Bearer …")
    return token


def signing_key(internal_key: str) -> tuple[str, OKPKey]:
    """The holder of an `INTERNAL_KEY`, `holder:base64` of a raw 32-byte Ed25519 seed, and the key to sign with.

    Raises BadSetting when it isn't one.
    """
    holder, seed = _read_key(internal_key, "INTERNAL_KEY")
    return holder, _private(seed)


def _read_key(text: str, name: str) -> tuple[str, bytes]:
    holder, _, encoded = text.strip().partition(":")
    try:
        raw = base64.b64decode(encoded, validate=True)
    except ValueError:
        raw = b""
    if not holder or len(raw) != 32:
        raise BadSetting(f"LINTELLO_{name}: each key is holder:base64 of 32 bytes")
    return holder, raw


def _b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _public(raw: bytes) -> OKPKey:
    return OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": _b64url(raw)})


def _private(seed: bytes) -> OKPKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return OKPKey.import_key({"kty": "OKP", "crv": "Ed25519", "x": _b64url(public), "d": _b64url(seed)})
