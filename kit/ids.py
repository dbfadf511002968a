"""Ids: UUIDv7, which sort by the time they were made (RFC 9562)."""

from uuid import UUID

from uuid_utils.compat import uuid7

from kit.errors import InvalidField


def new_id() -> str:
    """A new UUIDv7 in its 36-character form."""
    return str(uuid7())


def checked_id(field: str, value: str) -> str:
    """`value`, if it is a UUID in its 36-character form. Raises InvalidField naming the field."""
    try:
        if len(value) == 36 and str(UUID(value)) == value.lower():
            return value.lower()
    except ValueError:
        pass
    raise InvalidField(field, "must be a UUID")
