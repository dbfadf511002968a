"""Tokens for users of the gateway, signed with a shared secret."""

import time
from collections.abc import Callable, Iterable

from joserfc import jwt
from joserfc.jwk import OctKey


def mint_user_token(
    secret: str,
    user: str,
    subscription: str,
    roles: Iterable[str] = (),
    audience: str = "lintello",
    lifetime: int = 3600,
    clock: Callable[[], float] = time.time,
) -> str:
    """An HS256 token that the gateway takes while its JWT_SECRET is `secret` (at least 32 bytes).

    `lifetime` is in seconds.
    """
    now = int(clock())
    claims = {
        "sub": user,
        "aud": audience,
        "subscription": subscription,
        "roles": sorted(roles),
        "iat": now,
        "exp": now + lifetime,
    }
    return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(secret), algorithms=["HS256"])
