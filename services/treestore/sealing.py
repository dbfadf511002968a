"""Sealing: text at rest is encrypted, and bound to the place it stands at.

Every conversation has a random data key, wrapped by a master key. A sealed value is

    version byte ‖ 12-byte nonce ‖ ciphertext ‖ 16-byte tag

AES-256-GCM (NIST SP 800-38D) with random nonces: a data key seals far fewer than the 2^32 values that bound allows.
The associated data names the place (table, column, row, owner, format, version), so that a value moved to another
place, or put back from another version of a tree, doesn't open.
"""

import base64
import os
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kit.settings import BadSetting
from services.treestore.errors import DataLoss

FORMAT = 1
"""The number of the format of what is sealed."""

KEY_BYTES = 32
_VERSION = b"\x01"
_NONCE_BYTES = 12
_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sealed value stands."""

    table: str
    column: str
    row: str
    owner: str
    version: int = 0
    """The tree's version it belongs to; 0 for what isn't a tree."""

    def associated_data(self) -> bytes:
        """The place as bytes, each part behind its length, so that no two places give the same."""
        parts = (self.table, self.column, self.row, self.owner, str(FORMAT), str(self.version))
        encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
        return b"".join(struct.pack(">I", len(part)) + part for part in encoded)


class DataKey:
    """A key that seals and opens."""

    __slots__ = ("_cipher", "_key")

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._key = key

    def derive(self, info: bytes) -> bytes:
        """A key of 32 bytes for the purpose that `info` names, by HKDF-SHA256 (RFC 5869); it doesn't tell this one."""
        return _derive(self._key, info)

    def seal(self, place: Place, value: bytes) -> bytes:
        """The value, sealed for its place."""
        nonce = os.urandom(_NONCE_BYTES)
        return _VERSION + nonce + self._cipher.encrypt(nonce, value, place.associated_data())

    def open(self, place: Place, sealed: bytes) -> bytes:
        """The value that was sealed for this place. Raises DataLoss."""
        if len(sealed) < 1 + _NONCE_BYTES + _TAG_BYTES or sealed[:1] != _VERSION:
            raise DataLoss(place.table, place.column, place.row)
        nonce, ciphertext = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            return self._cipher.decrypt(nonce, ciphertext, place.associated_data())
        except InvalidTag:
            raise DataLoss(place.table, place.column, place.row) from None


@dataclass(frozen=True)
class Wrapped:
    """A data key as it is stored."""

    key_id: str
    """The master key that wrapped it."""
    dek: bytes


class Keyring:
    """The master keys. The first one wraps; every one unwraps."""

    def __init__(self, encryption_keys: str) -> None:
        """`encryption_keys` is `id:base64,…`, each of 32 bytes. Raises BadSetting, which quotes no key."""
        keys: dict[str, bytes] = {}
        for pair in encryption_keys.split(","):
            key_id, _, encoded = pair.strip().partition(":")
            try:
                key = base64.b64decode(encoded, validate=True)
            except ValueError:
                key = b""
            if not key_id or len(key) != KEY_BYTES or key_id in keys:
                raise BadSetting(
                    f"LINTELLO_ENCRYPTION_KEYS: each key is id:base64 of {KEY_BYTES} bytes, and each id comes once"
                )
            keys[key_id] = key
        self._ciphers = {key_id: DataKey(key) for key_id, key in keys.items()}
        self.page_keys = tuple(_derive(key, b"lintello treestore page tokens") for key in keys.values())
        """A key from each master key, for signing page tokens."""

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of the master keys, the one that wraps in front."""
        return tuple(self._ciphers)

    def create(self, conversation_id: str, owner: str) -> tuple[DataKey, Wrapped]:
        """A new random data key for a conversation, and its wrapped form."""
        key, key_id = os.urandom(KEY_BYTES), self.key_ids[0]
        wrapped = self._ciphers[key_id].seal(_dek_place(conversation_id, owner), key)
        return DataKey(key), Wrapped(key_id, wrapped)

    def unwrap(self, conversation_id: str, owner: str, wrapped: Wrapped) -> DataKey:
        """The data key of a conversation. Raises DataLoss, also when the master key isn't there."""
        place = _dek_place(conversation_id, owner)
        cipher = self._ciphers.get(wrapped.key_id)
        if cipher is None:
            raise DataLoss(place.table, "key_id", place.row)
        return DataKey(cipher.open(place, wrapped.dek))


def _dek_place(conversation_id: str, owner: str) -> Place:
    return Place("conversation", "dek", conversation_id, owner)


def _derive(key: bytes, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(key)
