"""Public keys of an issuer of tokens, fetched when first needed and kept a while."""

import asyncio
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import grpc
import httpx
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from kit import telemetry
from kit.errors import RemoteError
from kit.identity import NotVerified

KEPT_SECONDS = 600
AGAIN_SECONDS = 10
"""The least time between two fetches for keys that aren't known, so that made-up names can't flood the issuer."""
FETCH_SECONDS = 5
ANSWER_BYTES = 1024 * 1024
RSA_BITS = 2048

PublicKey = RSAKey | ECKey | OKPKey


class PublicKeys:
    """The keys at one JWKS URL. Source: RFC 7517."""

    algorithms = ["RS256", "ES256", "Ed25519", "EdDSA"]  # noqa: RUF012

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._clock = clock
        self._keys: dict[str, PublicKey] = {}
        self._fetched = float("-inf")
        self._fetching = asyncio.Lock()

    async def find(self, kid: str | None) -> PublicKey:
        """The key of this name. Raises NotVerified when the issuer has none, RemoteError when it doesn't answer."""
        if kid is None:
            raise NotVerified("the token doesn't name its key")
        async with self._fetching:
            age = self._clock() - self._fetched
            if age > KEPT_SECONDS or (kid not in self._keys and age > AGAIN_SECONDS):
                self._keys = await self._fetch()
                self._fetched = self._clock()
        if kid not in self._keys:
            raise NotVerified("the token can't be verified")
        return self._keys[kid]

    async def _fetch(self) -> dict[str, PublicKey]:
        try:
            async with httpx.AsyncClient(timeout=FETCH_SECONDS, follow_redirects=False) as client:
                answer = await client.get(self._url)
            answer.raise_for_status()
            listed = answer.json()["keys"] if len(answer.content) <= ANSWER_BYTES else None
        except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
            telemetry.log.warning("jwks_unavailable", error_type=type(error).__qualname__)
            raise RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "") from None
        found = [read_key(entry) for entry in listed or () if isinstance(entry, dict)]
        return {kid: key for pair in found if pair is not None for kid, key in (pair,)}


def read_key(entry: Mapping[str, Any]) -> tuple[str, PublicKey] | None:
    """A JWKS entry's name and key; None for a key of a kind, curve, size or use that tokens aren't signed with."""
    kid = entry.get("kid")
    if not isinstance(kid, str) or entry.get("use", "sig") != "sig":
        return None
    try:
        match entry.get("kty"):
            case "RSA":
                with warnings.catch_warnings():
                    # A small key is refused here; a warning besides would only fill the logs.
                    warnings.simplefilter("ignore", SecurityWarning)
                    rsa = RSAKey.import_key(dict(entry))
                return (kid, rsa) if rsa.public_key.key_size >= RSA_BITS else None
            case "EC" if entry.get("crv") == "P-256":
                return kid, ECKey.import_key(dict(entry))
            case "OKP" if entry.get("crv") == "Ed25519":
                return kid, OKPKey.import_key(dict(entry))
    except (JoseError, ValueError, KeyError, TypeError):
        return None
    return None
