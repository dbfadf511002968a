"""What the gateway reads from the environment."""

from typing import Literal

from pydantic import Field, SecretStr

from kit.settings import Settings


class GatewaySettings(Settings):
    """Settings of the gateway."""

    internal_public_keys: str = ""
    """Not needed here: the gateway mints internal tokens and verifies none."""
    internal_key: SecretStr
    """`gateway:base64` of the Ed25519 seed that internal tokens are signed with."""
    gateway_host: str = "127.0.0.1"
    gateway_port: int = Field(default=8080, ge=1, le=65535)
    engine_address: str = "127.0.0.1:50051"
    treestore_address: str = "127.0.0.1:50052"
    quota_address: str = "127.0.0.1:50053"
    auth_mode: Literal["dev", "jwt"] = "dev"
    """`dev`: everybody on this machine is the demo user; `jwt`: a verified token is needed."""
    jwt_secret: SecretStr | None = None
    """At least 32 bytes: user tokens are HS256."""
    jwt_jwks_url: str | None = None
    """Where the public keys of user tokens are: RS256, ES256 or Ed25519."""
    jwt_audience: str = "lintello"
    trial_model: bool = False
    """True when answers come from the trial model, so that the page says so."""
