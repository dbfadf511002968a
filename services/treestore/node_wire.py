"""Nodes between the wire and the domain."""

from collections.abc import Sequence

from lintello.common.v1 import node_pb2

from kit.errors import InvalidField
from kit.text import clean
from services.treestore.checks import node_id_field, uuid_field
from services.treestore.tree import Node, Role, Status

_ROLES = {node_pb2.NodeRole.Value(f"NODE_ROLE_{role.name}"): role for role in Role}
_STATUSES = {node_pb2.NodeStatus.Value(f"NODE_STATUS_{status.name}"): status for status in Status}


def nodes_from_wire(nodes: Sequence[node_pb2.Node], run_id: str) -> tuple[Node, ...]:
    """Nodes of one run. Raises InvalidField."""
    return tuple(_node_from_wire(f"nodes[{index}]", node, run_id) for index, node in enumerate(nodes))


def _node_from_wire(name: str, node: node_pb2.Node, run_id: str) -> Node:
    if node.role not in _ROLES:
        raise InvalidField(f"{name}.role", "must be a role")
    if node.status not in _STATUSES:
        raise InvalidField(f"{name}.status", "must be a status that is stored: explored, selected, pruned or merged")
    if node.run_id and str(uuid_field(f"{name}.run_id", node.run_id)) != run_id:
        raise InvalidField(f"{name}.run_id", "must be the run that stores it, or empty")
    return Node(
        id=node_id_field(f"{name}.id", node.id),
        parents=tuple(node_id_field(f"{name}.parents", parent) for parent in node.parents),
        role=_ROLES[node.role],
        status=_STATUSES[node.status],
        branch=clean(node.branch),
        summary=clean(node.summary),
        content=clean(node.content),
        score=node.score if node.HasField("score") else None,
        input_tokens=node.input_tokens,
        output_tokens=node.output_tokens,
        model=clean(node.model),
        message_id=str(uuid_field(f"{name}.message_id", node.message_id)) if node.message_id else "",
        run_id=run_id,
        failure=clean(node.failure),
        fallback_from=clean(node.fallback_from),
        duration_ms=node.duration_ms,
    )


def node_to_wire(node: Node) -> node_pb2.Node:
    """A node."""
    return node_pb2.Node(
        id=node.id,
        parents=node.parents,
        role=node_pb2.NodeRole.Value(f"NODE_ROLE_{node.role.name}"),
        status=node_pb2.NodeStatus.Value(f"NODE_STATUS_{node.status.name}"),
        branch=node.branch,
        summary=node.summary,
        content=node.content,
        score=node.score,
        input_tokens=node.input_tokens,
        output_tokens=node.output_tokens,
        model=node.model,
        message_id=node.message_id,
        run_id=node.run_id,
        failure=node.failure,
        fallback_from=node.fallback_from,
        duration_ms=node.duration_ms,
    )
