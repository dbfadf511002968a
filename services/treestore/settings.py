"""What treestore reads from the environment."""

from pydantic import SecretStr

from kit.settings import Settings


class TreestoreSettings(Settings):
    """Settings of the treestore service."""

    treestore_address: str = "127.0.0.1:50052"
    """`host:port` to listen at."""
    database_url: SecretStr
    """`postgresql://…`"""
    encryption_keys: SecretStr
    """`id:base64,…`: master keys of 32 bytes; the first one wraps new data keys."""
