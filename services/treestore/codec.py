"""Nodes as bytes at rest: JSON with the number of its format."""

from collections.abc import Sequence
from typing import Any

import orjson

from services.treestore.sealing import FORMAT
from services.treestore.tree import Node, Role, Status


def encode_nodes(nodes: Sequence[Node]) -> bytes:
    """The nodes as JSON, in the current format."""
    return orjson.dumps({"format": FORMAT, "nodes": nodes})


def decode_nodes(encoded: bytes) -> tuple[Node, ...]:
    """The nodes that were encoded. Raises ValueError, which quotes nothing, when they are not of a known format."""
    try:
        body = orjson.loads(encoded)
        if body["format"] != FORMAT:
            raise ValueError
        return tuple(_node(fields) for fields in body["nodes"])
    except (ValueError, KeyError, TypeError):
        raise ValueError("not nodes of a known format") from None


def _node(fields: dict[str, Any]) -> Node:
    role, status = Role(fields.pop("role")), Status(fields.pop("status"))
    return Node(role=role, status=status, parents=tuple(fields.pop("parents")), **fields)
