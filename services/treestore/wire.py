"""Between the wire and the domain: two pure functions a type; what comes in is checked and cleaned here, once."""

import math
from collections.abc import Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import node_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import InvalidField
from kit.text import clean
from services.treestore.checks import (
    count_field,
    name_field,
    node_id_field,
    question_field,
    slug_field,
    title_field,
    uuid_field,
)
from services.treestore.ledger import Finish
from services.treestore.records import (
    Answer,
    Author,
    Conversation,
    Details,
    Message,
    ModeSource,
    Run,
    RunStatus,
    Start,
    Usage,
)
from services.treestore.tree import Node, Role, Status

MAX_MODELS = 100

_ROLES = {node_pb2.NodeRole.Value(f"NODE_ROLE_{role.name}"): role for role in Role}
_STATUSES = {node_pb2.NodeStatus.Value(f"NODE_STATUS_{status.name}"): status for status in Status}
_ENDS = {pb.RunStatus.Value(f"RUN_STATUS_{status.name}"): status for status in RunStatus if status != "running"}
_SOURCES = {
    pb.MODE_SOURCE_UNSPECIFIED: ModeSource.NOBODY,
    pb.MODE_SOURCE_USER: ModeSource.USER,
    pb.MODE_SOURCE_DETECTED: ModeSource.DETECTED,
}
_SOURCES_TO_WIRE = {source: number for number, source in _SOURCES.items()}
_AUTHORS_TO_WIRE = {Author.USER: pb.ROLE_USER, Author.ASSISTANT: pb.ROLE_ASSISTANT}


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


def start_from_wire(request: pb.StartRunRequest) -> Start:
    """A question that was accepted. Raises InvalidField, TooLarge."""
    parent: str | None = None
    if request.HasField("parent_node_id"):
        parent = node_id_field("parent_node_id", request.parent_node_id) if request.parent_node_id else ""
    return Start(
        run_id=uuid_field("run_id", request.run_id),
        message_id=uuid_field("message_id", request.message_id),
        conversation_id=uuid_field("conversation_id", request.conversation_id),
        new_conversation=request.new_conversation,
        message=question_field(request.message),
        title=title_field(request.title),
        parent_node_id=parent,
    )


def finish_from_wire(request: pb.FinishRunRequest) -> Finish:
    """How a run ended. Raises InvalidField."""
    if request.status not in _ENDS:
        raise InvalidField("status", "must be a status that ends a run: done, partial, stopped or failed")
    if request.mode_source not in _SOURCES:
        raise InvalidField("mode_source", "must be user, detected, or unspecified")
    nodes = nodes_from_wire(request.nodes, str(uuid_field("run_id", request.run_id)))
    return Finish(
        status=_ENDS[request.status],
        step_failed=request.partial,
        answer=_answer_from_wire(request, nodes),
        nodes=nodes,
        active_node_id=node_id_field("active_node_id", request.active_node_id) if request.active_node_id else "",
        usage=_usage_from_wire(request.usage),
        details=_details_from_wire(request.details),
        mode=slug_field("mode", request.mode),
        mode_source=_SOURCES[request.mode_source],
    )


def _answer_from_wire(request: pb.FinishRunRequest, nodes: Sequence[Node]) -> Answer | None:
    if not request.message_id:
        if request.content:
            raise InvalidField("message_id", "is missing for the answer's content")
        return None
    message_id = uuid_field("message_id", request.message_id)
    at = [node.id for node in nodes if node.message_id == str(message_id)]
    if len(at) != 1:
        raise InvalidField("nodes", "exactly one must carry the answer's message_id")
    return Answer(message_id, clean(request.content), at[0], name_field("model", request.model))


def _usage_from_wire(usage: Sequence[pb.Usage]) -> tuple[Usage, ...]:
    if len(usage) > MAX_MODELS:
        raise InvalidField("usage", f"must have at most {MAX_MODELS} models")
    return tuple(
        Usage(
            model=name_field("usage.model", one.model),
            input_tokens=count_field("usage.input_tokens", one.input_tokens),
            output_tokens=count_field("usage.output_tokens", one.output_tokens),
            estimated=one.estimated,
        )
        for one in usage
    )


def _details_from_wire(details: pb.RunDetails) -> Details:
    if not 0 <= details.complexity <= 5:
        raise InvalidField("details.complexity", "must be 1 to 5, or 0 when it wasn't assessed")
    if not (math.isfinite(details.cost_eur) and details.cost_eur >= 0):
        raise InvalidField("details.cost_eur", "must be a finite number and not negative")
    return Details(
        schema=slug_field("details.schema", details.schema),
        mode=slug_field("details.mode", details.mode),
        complexity=details.complexity,
        display_template=name_field("details.display_template", details.display_template),
        duration_ms=count_field("details.duration_ms", details.duration_ms),
        degraded=name_field("details.degraded", details.degraded),
        cost_eur=details.cost_eur,
    )


def conversation_to_wire(conversation: Conversation) -> pb.Conversation:
    """A conversation."""
    return pb.Conversation(
        conversation_id=str(conversation.id),
        title=conversation.title,
        mode=conversation.mode,
        mode_source=_SOURCES_TO_WIRE[conversation.mode_source],
        active_node_id=conversation.active_node_id,
        created_at=_time_to_wire(conversation.created_at),
        updated_at=_time_to_wire(conversation.updated_at),
    )


def message_to_wire(message: Message) -> pb.Message:
    """A message."""
    return pb.Message(
        message_id=str(message.id),
        role=_AUTHORS_TO_WIRE[message.author],
        content=message.content,
        reply_to=str(message.reply_to or ""),
        run_id=str(message.run_id),
        node_id=message.node_id,
        model=message.model,
        tokens=message.tokens,
        created_at=_time_to_wire(message.created_at),
        run=run_to_wire(message.run) if message.run is not None else None,
    )


def run_to_wire(run: Run) -> pb.Run:
    """A run."""
    details = run.details
    return pb.Run(
        run_id=str(run.id),
        conversation_id=str(run.conversation_id),
        status=pb.RunStatus.Value(f"RUN_STATUS_{run.status.name}"),
        partial=run.partial,
        message_id=str(run.message_id),
        parent_node_id=run.parent_node_id,
        details=pb.RunDetails(
            schema=details.schema,
            mode=details.mode,
            complexity=details.complexity,
            display_template=details.display_template,
            duration_ms=details.duration_ms,
            degraded=details.degraded,
            cost_eur=details.cost_eur,
        ),
        usage=[
            pb.Usage(
                model=usage.model,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                estimated=usage.estimated,
            )
            for usage in run.usage
        ],
        heartbeat_at=_time_to_wire(run.heartbeat_at),
        created_at=_time_to_wire(run.created_at),
        ended_at=_time_to_wire(run.ended_at) if run.ended_at is not None else None,
    )


def _time_to_wire(at: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
