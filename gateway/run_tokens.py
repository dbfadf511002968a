"""One-run tokens: they stand in a URL and open the events of one run, for `EventSource`, which sends no headers.

Source: RFC 7519 (JWT), RFC 8037 (Ed25519).
"""

import time
from collections.abc import Callable

from joserfc import jwt
from joserfc.errors import JoseError
from starlette.requests import Request

from gateway.identity import identify
from kit.identity import LEEWAY_SECONDS, Caller, NotVerified, signing_key

AUDIENCE = "lintello-run-events"
"""No service's name: what is meant for one isn't taken here, nor the other way round."""
LIFETIME_SECONDS = 2 * 3600
"""A run may take an hour, and its events are kept for another one."""
ALGORITHM = "Ed25519"


class RunTokens:
    """Mints and verifies them with the internal key that all gateways have, so that each takes those of the others."""

    def __init__(self, internal_key: str, clock: Callable[[], float] = time.time) -> None:
        """`internal_key` is the gateway's `INTERNAL_KEY`. Raises BadSetting when it isn't one."""
        self._holder, self._key = signing_key(internal_key)
        self._clock = clock

    def mint(self, run_id: str, caller: Caller) -> str:
        """A token for the events of one run, in the name of its user, without their roles."""
        now = int(self._clock())
        claims = {
            "iss": self._holder,
            "aud": AUDIENCE,
            "sub": caller.user,
            "subscription": caller.subscription,
            "run_id": run_id,
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        }
        return jwt.encode({"alg": ALGORITHM, "kid": self._holder}, claims, self._key, algorithms=[ALGORITHM])

    def verify(self, token: str, run_id: str) -> Caller:
        """Who a token for this run speaks for. Raises NotVerified."""
        try:
            claims = jwt.decode(token, self._key, algorithms=[ALGORITHM]).claims
        except (JoseError, ValueError) as error:
            raise NotVerified("the run's token can't be verified") from error
        registry = jwt.JWTClaimsRegistry(
            now=int(self._clock()),
            leeway=LEEWAY_SECONDS,
            aud={"essential": True, "value": AUDIENCE},
            exp={"essential": True},
            run_id={"essential": True, "value": run_id},
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise NotVerified("the run's token has expired or is for another run") from error
        return Caller(user=claims["sub"], subscription=claims["subscription"])


async def identify_reader(run_id: str, request: Request) -> Caller:
    """Who asks for a run's events: by a one-run token in the query, else as everywhere. Raises NotVerified."""
    given = request.query_params.getlist("token")
    if not given:
        return await identify(request)
    if len(given) > 1:
        raise NotVerified("one token is enough")
    tokens: RunTokens = request.app.state.run_tokens
    return tokens.verify(given[0], run_id)
