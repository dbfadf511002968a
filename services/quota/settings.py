"""What the quota service reads from the environment."""

from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr
from redis.asyncio.connection import parse_url

from kit.settings import Settings


def _check(url: SecretStr) -> SecretStr:
    try:
        parse_url(url.get_secret_value())
    except ValueError:
        raise ValueError("must be redis://…, rediss://… or unix://…") from None
    return url


class QuotaSettings(Settings):
    """Where to listen, where the leases and the books are, and how many leases there may be."""

    quota_address: str = "127.0.0.1:50053"
    redis_url: Annotated[SecretStr, AfterValidator(_check)]
    """The server that holds the leases; the URL may have a password in it."""
    database_url: SecretStr
    """`postgresql://…` of the books."""
    max_thinks_concurrent: int = Field(default=20, ge=1)
    """How many thinks may run at once, over all engines."""
    lease_seconds: float = Field(default=30, ge=0.1, le=3600)
    """How long a lease lasts that nobody renews."""
