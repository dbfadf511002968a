"""Identity: who asks. Only a verified token says it, or, on this machine alone, the dev mode.

Which algorithms are taken is fixed by the settings; what a token says about itself never widens it.
Sources: RFC 7519 (JWT), RFC 8725 (its best practices).
"""

import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

from joserfc import jws, jwt
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from starlette.requests import Request

from gateway.settings import GatewaySettings
from kit.identity import LEEWAY_SECONDS, Caller, NotVerified, bearer
from kit.settings import BadSetting
from kit.text import clean

SECRET_BYTES = 32
USER_CHARACTERS = 200
LOOPBACK = ("127.0.0.1", "localhost", "::1")
DEMO = Caller(user="demo", subscription="lintello", roles=frozenset({"admin"}))
"""Who everybody on this machine is in dev mode without a token."""
DEFAULT_SUBSCRIPTION = "gratuit"

Key = OctKey | RSAKey | ECKey | OKPKey
Clock = Callable[[], float]


class KeySource(Protocol):
    """Where the key of a token comes from."""

    algorithms: list[str]
    """What a token may be signed with."""

    async def find(self, kid: str | None) -> Key:
        """The key a token names. Raises NotVerified when there is none."""
        ...


class SharedSecret:
    """One secret for all tokens."""

    algorithms = ["HS256"]  # noqa: RUF012

    def __init__(self, secret: str) -> None:
        """Raises BadSetting when the secret is too short."""
        if len(secret.encode()) < SECRET_BYTES:
            raise BadSetting(f"LINTELLO_JWT_SECRET: at least {SECRET_BYTES} bytes")
        self._key = OctKey.import_key(secret)

    async def find(self, kid: str | None) -> Key:
        """The secret, whatever the token names."""
        return self._key


class Identity:
    """Says who sends a request."""

    def __init__(
        self, keys: KeySource | None, audience: str, fallback: Caller | None, clock: Clock = time.time
    ) -> None:
        """`fallback` is who asks without a token; None: a token is needed. Without `keys` no token is taken."""
        self._keys = keys
        self._audience = audience
        self._fallback = fallback
        self._clock = clock

    async def caller(self, authorization: str | None) -> Caller:
        """Who a request's Authorization header speaks for. Raises NotVerified."""
        if authorization is None and self._fallback is not None:
            return self._fallback
        return await self.verify(bearer({"authorization": authorization or ""}))

    async def verify(self, token: str) -> Caller:
        """Who a user token speaks for. Raises NotVerified, and RemoteError when its keys can't be fetched."""
        if self._keys is None:
            raise NotVerified("no token is taken here")
        try:
            header = jws.extract_compact(token.encode()).headers() if token.isascii() else {}
        except (JoseError, ValueError):
            header = {}
        kid = header.get("kid")
        if header.get("alg") not in self._keys.algorithms:
            raise NotVerified("the token can't be verified")
        key = await self._keys.find(kid if isinstance(kid, str) else None)
        claims = self._decode(token, key, self._keys.algorithms)
        self._validate(claims)
        return _caller(claims)

    def _decode(self, token: str, key: Key, algorithms: list[str]) -> Mapping[str, Any]:
        try:
            with warnings.catch_warnings():
                # Issuers still call Ed25519 by its older name, EdDSA, which RFC 9864 deprecates.
                warnings.simplefilter("ignore", SecurityWarning)
                return jwt.decode(token, key, algorithms=algorithms).claims
        except (JoseError, ValueError) as error:
            raise NotVerified("the token can't be verified") from error

    def _validate(self, claims: Mapping[str, Any]) -> None:
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY_SECONDS,
            exp={"essential": True},
            sub={"essential": True},
            aud={"essential": True, "value": self._audience},
        )
        try:
            registry.validate(dict(claims))
        except JoseError as error:
            raise NotVerified("the token has expired, isn't valid yet or is for something else") from error


def _caller(claims: Mapping[str, Any]) -> Caller:
    user = claims["sub"]
    subscription = claims.get("subscription", DEFAULT_SUBSCRIPTION)
    roles = claims.get("roles", [])
    texts = [user, subscription, *roles] if isinstance(roles, list) else [None]
    if not all(isinstance(text, str) and 0 < len(text) <= USER_CHARACTERS and clean(text) == text for text in texts):
        raise NotVerified("the token's claims aren't as they should be")
    return Caller(user=user, subscription=subscription, roles=frozenset(roles))


def identity_from(settings: GatewaySettings, clock: Clock = time.time) -> Identity:
    """The identity the settings ask for. Raises BadSetting where they contradict each other or aren't safe."""
    secret, url = settings.jwt_secret, settings.jwt_jwks_url
    if secret is not None and url is not None:
        raise BadSetting("LINTELLO_JWT_SECRET: set it or LINTELLO_JWT_JWKS_URL, not both")
    keys: KeySource | None = None
    if secret is not None:
        keys = SharedSecret(secret.get_secret_value())
    elif url is not None:
        # Its HTTP client costs memory that only this way of signing in needs.
        from gateway.jwks import PublicKeys

        keys = PublicKeys(_checked(url))
    if settings.auth_mode == "jwt":
        if keys is None:
            raise BadSetting("LINTELLO_AUTH_MODE: jwt needs LINTELLO_JWT_SECRET or LINTELLO_JWT_JWKS_URL")
        return Identity(keys, settings.jwt_audience, None, clock)
    if settings.gateway_host not in LOOPBACK:
        raise BadSetting("LINTELLO_GATEWAY_HOST: in dev mode only this machine may ask: 127.0.0.1, ::1 or localhost")
    return Identity(keys, settings.jwt_audience, DEMO, clock)


async def identify(request: Request) -> Caller:
    """Who sends this request; a dependency of every route that isn't open. Raises NotVerified."""
    identity: Identity = request.app.state.identity
    given = request.headers.getlist("authorization")
    if len(given) > 1:
        raise NotVerified("one Authorization header is enough")
    return await identity.caller(given[0] if given else None)


def _checked(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK):
        return url
    raise BadSetting("LINTELLO_JWT_JWKS_URL: must begin with https://")
