from pathlib import Path

import pytest

from services.treestore.codec import decode_nodes, encode_nodes
from services.treestore.tree import Node, Role, Status

FIXTURE = Path(__file__).parent / "fixtures" / "tree_format_1.json"
RUN = "01980000-0000-7000-8000-00000000000"
NODES = (
    Node(
        id="n1",
        role=Role.DECOMPOSE,
        status=Status.EXPLORED,
        run_id=f"{RUN}1",
        summary="Trois étapes",
        content="1. …\n2. …",
        input_tokens=120,
        output_tokens=45,
        model="small-1",
        duration_ms=810,
    ),
    Node(
        id="n2",
        role=Role.EXECUTE,
        status=Status.PRUNED,
        run_id=f"{RUN}1",
        parents=("n1",),
        branch="prudente",
        score=0.25,
        failure="timeout",
        fallback_from="large-1",
    ),
    Node(
        id="n3",
        role=Role.MERGE,
        status=Status.SELECTED,
        run_id=f"{RUN}2",
        parents=("n1", "n2"),
        message_id=f"{RUN}3",
    ),
)


def test_format_1_is_read_as_it_was_written() -> None:
    assert decode_nodes(FIXTURE.read_bytes()) == NODES


def test_format_1_is_still_written_the_same() -> None:
    assert encode_nodes(NODES) == FIXTURE.read_bytes().rstrip(b"\n")


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"format":2,"nodes":[]}',
        b'{"format":1,"nodes":[{"id":"n1"}]}',
        b'{"format":1,"nodes":[{"id":"n1","role":"execute","status":"exploring","run_id":"r","parents":[]}]}',
    ],
)
def test_anything_else_is_refused_without_a_quote(encoded: bytes) -> None:
    with pytest.raises(ValueError, match="not nodes of a known format"):
        decode_nodes(encoded)
