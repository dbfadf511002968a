"""The secrets a local stack makes for itself on its first start and never overwrites."""

import base64
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cli.local.errors import FolderUnusable, KeyMissing
from cli.local.folder import DataFolder

ENCRYPTION = "encryption_keys"
SIGNERS = ("gateway", "engine")
DATABASE = "postgres_password"
SUPERUSER = "postgres_superuser_password"
JWT = "jwt_secret"


@dataclass(frozen=True, repr=False)
class Keys:
    """The secrets of one data folder, in the form their settings have."""

    encryption_keys: str
    """`ENCRYPTION_KEYS`: `local:<base64 of 32 bytes>`."""
    internal_keys: dict[str, str]
    """`INTERNAL_KEY` of gateway and engine: `<name>:<base64 of the raw 32-byte Ed25519 seed>`."""
    jwt_secret: str
    postgres_password: str
    postgres_superuser_password: str

    @property
    def internal_public_keys(self) -> str:
        """`INTERNAL_PUBLIC_KEYS`: `gateway:<base64 raw public key>,engine:<…>`."""
        return ",".join(public_key(self.internal_keys[name]) for name in SIGNERS)


def public_key(internal_key: str) -> str:
    """`<kid>:<base64 raw public key>` of an `INTERNAL_KEY` value. Raises ValueError when it isn't one."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    kid, _, seed = internal_key.partition(":")
    private = Ed25519PrivateKey.from_private_bytes(base64.b64decode(seed, validate=True))
    return f"{kid}:{_b64(private.public_key().public_bytes_raw())}"


def encryption_file(folder: DataFolder) -> Path:
    """The file whose loss makes every conversation unreadable: the one to back up."""
    return folder.keys / ENCRYPTION


def create_missing_keys(folder: DataFolder) -> bool:
    """Make the secrets that aren't there yet; the caller holds the folder. True on the first start.

    Raises KeyMissing when a secret is gone that the existing database needs: a new one would not open it; and
    FolderUnusable when one can't be written.
    """
    needed = (ENCRYPTION, DATABASE, SUPERUSER)
    database_exists = (folder.postgres / "PG_VERSION").exists()
    for name in needed:
        if database_exists and not (folder.keys / name).exists():
            raise KeyMissing(folder.keys / name)
    first = not encryption_file(folder).exists()
    makers: dict[str, Callable[[], str]] = {
        **{_signer_file(name): _signer(name) for name in SIGNERS},
        JWT: lambda: secrets.token_urlsafe(48),
        DATABASE: lambda: secrets.token_urlsafe(32),
        SUPERUSER: lambda: secrets.token_urlsafe(32),
        ENCRYPTION: lambda: f"local:{_b64(secrets.token_bytes(32))}",
    }
    try:
        for name, make in makers.items():
            if not (folder.keys / name).exists():
                _write_new(folder.keys / name, make())
    except OSError as error:
        raise FolderUnusable(folder.path, error.strerror or type(error).__name__) from error
    return first


def read_keys(folder: DataFolder) -> Keys:
    """The folder's secrets. Raises KeyMissing, naming the file; FolderUnusable when they are another user's."""
    return Keys(
        encryption_keys=_read(folder.keys / ENCRYPTION),
        internal_keys={name: _read(folder.keys / _signer_file(name)) for name in SIGNERS},
        jwt_secret=_read(folder.keys / JWT),
        postgres_password=_read(folder.keys / DATABASE),
        postgres_superuser_password=_read(folder.keys / SUPERUSER),
    )


def _signer(name: str) -> Callable[[], str]:
    # An Ed25519 private key is any 32 random bytes (RFC 8032, 5.1.5).
    return lambda: f"{name}:{_b64(secrets.token_bytes(32))}"


def _signer_file(name: str) -> str:
    return f"{name}_internal_key"


def _b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")


def _read(path: Path) -> str:
    try:
        value = path.read_text("ascii").strip()
    except FileNotFoundError:
        raise KeyMissing(path) from None
    except PermissionError as error:
        raise FolderUnusable(path.parent.parent, error.strerror or type(error).__name__) from error
    if not value:
        raise KeyMissing(path)
    return value


def _write_new(path: Path, value: str) -> None:
    """Whole or not at all, and never over an existing file: `link` fails where `rename` would replace."""
    draft = path.with_name(f".{path.name}.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(value + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.link(draft, path)
    draft.unlink()
