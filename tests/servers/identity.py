"""Ed25519 keys and tokens, as the gateway and the engine hold them."""

import base64
import secrets
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kit.identity import Caller, Signer

USER = Caller(user="user-1", subscription="pro", roles=frozenset({"user"}))
ADMIN = Caller(user="admin-1", subscription="pro", roles=frozenset({"admin"}))


@dataclass(frozen=True)
class Keys:
    """The private keys of gateway and engine, and what everybody knows of them."""

    gateway: str
    """`INTERNAL_KEY` of the gateway."""
    engine: str
    """`INTERNAL_KEY` of the engine."""
    public: str
    """`INTERNAL_PUBLIC_KEYS` of every service."""

    @property
    def gateway_signer(self) -> Signer:
        """Mints tokens that speak for a user."""
        return Signer(self.gateway)

    @property
    def engine_signer(self) -> Signer:
        """Mints tokens of a service that acts for a user."""
        return Signer(self.engine)


def keys() -> Keys:
    """New keys that nobody else has."""
    gateway, engine = private_key("gateway"), private_key("engine")
    return Keys(gateway, engine, f"{public_key(gateway)},{public_key(engine)}")


def private_key(holder: str) -> str:
    """`holder:base64` of a new Ed25519 seed: an `INTERNAL_KEY`."""
    return f"{holder}:{base64.b64encode(secrets.token_bytes(32)).decode()}"


def public_key(internal_key: str) -> str:
    """The public half of an `INTERNAL_KEY`, in the same form."""
    holder, _, seed = internal_key.partition(":")
    raw = Ed25519PrivateKey.from_private_bytes(base64.b64decode(seed)).public_key().public_bytes_raw()
    return f"{holder}:{base64.b64encode(raw).decode()}"
