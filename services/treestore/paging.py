"""Page tokens: where a list goes on, signed, so that a token changed or meant for another list is refused."""

import base64
import hmac
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kit.errors import InvalidField

_MAC_BYTES = 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)


class PageTokens:
    """Signs and verifies page tokens."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """The first key signs, every one verifies."""
        self._keys = tuple(keys)

    def encode(self, scope: tuple[str, ...], position: str) -> str:
        """A token for going on at `position` of the list that `scope` names."""
        mac = _mac(self._keys[0], scope, position)
        return _text(mac + position.encode())

    def decode(self, scope: tuple[str, ...], token: str) -> str:
        """The position of a token of the same list. Raises InvalidField naming page_token."""
        try:
            raw = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
            mac, position = raw[:_MAC_BYTES], raw[_MAC_BYTES:].decode()
        except ValueError:
            raw, mac, position = b"", b"", ""
        if _text(raw) != token or not any(hmac.compare_digest(mac, _mac(key, scope, position)) for key in self._keys):
            raise InvalidField("page_token", "must be the next_page_token of the page before, of the same list")
        return position

    def encode_row(self, scope: tuple[str, ...], at: datetime, row_id: uuid.UUID) -> str:
        """A token for going on behind a row of a list that is ordered by time and id."""
        return self.encode(scope, f"{(at - _EPOCH) // _TICK} {row_id}")

    def decode_row(self, scope: tuple[str, ...], token: str) -> tuple[datetime, uuid.UUID] | None:
        """Time and id of the row to go on behind; None for an empty token. Raises InvalidField naming page_token."""
        if not token:
            return None
        microseconds, _, row_id = self.decode(scope, token).partition(" ")
        return _EPOCH + int(microseconds) * _TICK, uuid.UUID(row_id)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _mac(key: bytes, scope: tuple[str, ...], position: str) -> bytes:
    parts = [part.encode("utf-8", "surrogatepass") for part in (*scope, position)]
    signed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.digest(key, signed, "sha256")[:_MAC_BYTES]
