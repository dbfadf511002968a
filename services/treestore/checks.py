"""What a field of a request may hold. Every refusal names the field and says what is allowed; none quotes the value."""

import re
import uuid

from kit.errors import InvalidField, TooLarge
from kit.text import byte_size, clean
from services.treestore.tree import MAX_ID

MAX_TITLE = 200
MAX_MESSAGE_BYTES = 256 * 1024
MAX_NAME = 200
MAX_KEY = 200
HASH_BYTES = 32

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,49}")


def uuid_field(name: str, value: str) -> uuid.UUID:
    """A UUID in its usual form of 36 characters. Raises InvalidField."""
    if not _UUID.fullmatch(value):
        raise InvalidField(name, "must be a UUID of 36 characters")
    return uuid.UUID(value)


def node_id_field(name: str, value: str) -> str:
    """A node's id. Raises InvalidField."""
    if not 1 <= len(value) <= MAX_ID or clean(value) != value:
        raise InvalidField(name, f"must have 1 to {MAX_ID} characters")
    return value


def title_field(value: str, least: int = 0) -> str:
    """A title, cleaned. Raises InvalidField."""
    title = clean(value)
    if len(title) > MAX_TITLE or len(title.strip()) < least:
        raise InvalidField("title", f"must have {least} to {MAX_TITLE} characters")
    return title


def question_field(value: str) -> str:
    """A user's message, cleaned. Raises InvalidField, TooLarge."""
    question = clean(value)
    if not question.strip():
        raise InvalidField("message", "must not be empty")
    if byte_size(question) > MAX_MESSAGE_BYTES:
        raise TooLarge("message", f"must have at most {MAX_MESSAGE_BYTES // 1024} KiB")
    return question


def slug_field(name: str, value: str) -> str:
    """A mode's slug, or empty. Raises InvalidField."""
    if value and not _SLUG.fullmatch(value):
        raise InvalidField(name, "must have 1 to 50 of a-z, 0-9, - and _")
    return value


def name_field(name: str, value: str) -> str:
    """A model's or a schema's name, cleaned. Raises InvalidField."""
    cleaned = clean(value)
    if len(cleaned) > MAX_NAME:
        raise InvalidField(name, f"must have at most {MAX_NAME} characters")
    return cleaned


def count_field(name: str, value: int) -> int:
    """A count, which can't be negative. Raises InvalidField."""
    if value < 0:
        raise InvalidField(name, "must not be negative")
    return value


def idempotency_fields(key: str, request_hash: bytes) -> tuple[str, bytes]:
    """An idempotency key with the hash of its request, or neither. Raises InvalidField."""
    if len(key) > MAX_KEY or not (key.isascii() and key.isprintable()):
        raise InvalidField("idempotency_key", f"must have at most {MAX_KEY} printable ASCII characters")
    if len(request_hash) != (HASH_BYTES if key else 0):
        raise InvalidField("request_hash", f"must have {HASH_BYTES} bytes with an idempotency_key, and none without")
    return key, request_hash


def page_size_field(value: int, default: int, most: int) -> int:
    """The size of a page; 0 is the default. Raises InvalidField."""
    if not 0 <= value <= most:
        raise InvalidField("page_size", f"must be 1 to {most}, or 0 for {default}")
    return value or default
