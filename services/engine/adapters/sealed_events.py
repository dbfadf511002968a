"""Events, sealed: what stands in a replay log says nothing without the run's key, and opens at its own place only.

A sealed event is

    version byte ‖ 12-byte nonce ‖ ciphertext ‖ 16-byte tag

AES-256-GCM (NIST SP 800-38D) with random nonces. Not numbered ones: when a run's engine has fallen silent, another
process may seal an event of the same number under the same key.
"""

import os

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from lintello.engine.v1 import engine_pb2 as pb

from services.engine.events import Numbered
from services.engine.wire_events import UnknownEvent, event_from_wire, event_to_wire

_VERSION = b"\x01"
_NONCE_BYTES = 12


class NotOpened(Exception):
    """An entry isn't the event that it stands for; the text says where it stands."""


class SealedEvents:
    """Seals and opens the events of one run."""

    def __init__(self, run_id: str, key: bytes) -> None:
        """`key` is the run's event key, 32 bytes."""
        self._run_id = run_id
        self._cipher = AESGCM(key)

    def seal(self, numbered: Numbered) -> bytes:
        """An event, sealed for its place in the run."""
        nonce = os.urandom(_NONCE_BYTES)
        event = event_to_wire(self._run_id, numbered).SerializeToString()
        return _VERSION + nonce + self._cipher.encrypt(nonce, event, self._place(numbered.seq))

    def open(self, seq: int, sealed: bytes) -> Numbered:
        """The event that was sealed for this place. Raises NotOpened."""
        nonce, ciphertext = sealed[1 : 1 + _NONCE_BYTES], sealed[1 + _NONCE_BYTES :]
        try:
            if sealed[:1] != _VERSION or len(nonce) != _NONCE_BYTES:
                raise InvalidTag
            event = self._cipher.decrypt(nonce, ciphertext, self._place(seq))
            return event_from_wire(pb.ThinkingEvent.FromString(event))
        except (InvalidTag, DecodeError, UnknownEvent) as error:
            raise NotOpened(f"{type(error).__name__} at event {seq} of run {self._run_id}") from None

    def _place(self, seq: int) -> bytes:
        return f"lintello run {self._run_id} event {seq}".encode()
