"""Runs between the wire and the domain."""

import math
from collections.abc import Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import InvalidField
from kit.text import clean
from services.treestore.checks import (
    count_field,
    idempotency_fields,
    name_field,
    node_id_field,
    question_field,
    slug_field,
    title_field,
    uuid_field,
)
from services.treestore.ledger import Finish
from services.treestore.node_wire import nodes_from_wire
from services.treestore.records import Answer, Details, ModeSource, Run, RunStatus, Start, Unsettled, Usage
from services.treestore.tree import Node

MAX_MODELS = 100

MODE_SOURCES = {
    pb.MODE_SOURCE_UNSPECIFIED: ModeSource.NOBODY,
    pb.MODE_SOURCE_USER: ModeSource.USER,
    pb.MODE_SOURCE_DETECTED: ModeSource.DETECTED,
}
_STATUSES_TO_WIRE = {status: run_pb2.RunStatus.Value(f"RUN_STATUS_{status.name}") for status in RunStatus}
_ENDS = {number: status for status, number in _STATUSES_TO_WIRE.items() if status is not RunStatus.RUNNING}


def start_from_wire(request: pb.StartRunRequest) -> Start:
    """A question that was accepted. Raises InvalidField, TooLarge."""
    parent: str | None = None
    key, request_hash = idempotency_fields(request.idempotency_key, request.request_hash)
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
        idempotency_key=key,
        request_hash=request_hash,
        subscription=name_field("subscription", request.subscription),
    )


def finish_from_wire(request: pb.FinishRunRequest) -> Finish:
    """How a run ended. Raises InvalidField."""
    if request.status not in _ENDS:
        raise InvalidField("status", "must be a status that ends a run: done, partial, stopped or failed")
    if request.mode_source not in MODE_SOURCES:
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
        mode_source=MODE_SOURCES[request.mode_source],
        last_seq=count_field("last_seq", request.last_seq),
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


def _usage_from_wire(usage: Sequence[run_pb2.Usage]) -> tuple[Usage, ...]:
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
        node_count=count_field("details.node_count", details.node_count),
        fallbacks=count_field("details.fallbacks", details.fallbacks),
        retries=count_field("details.retries", details.retries),
    )


def run_to_wire(run: Run) -> pb.Run:
    """A run."""
    return pb.Run(
        run_id=str(run.id),
        conversation_id=str(run.conversation_id),
        status=_STATUSES_TO_WIRE[run.status],
        partial=run.partial,
        message_id=str(run.message_id),
        parent_node_id=run.parent_node_id,
        details=_details_to_wire(run.details),
        usage=_usage_to_wire(run.usage),
        heartbeat_at=time_to_wire(run.heartbeat_at),
        created_at=time_to_wire(run.created_at),
        ended_at=time_to_wire(run.ended_at) if run.ended_at is not None else None,
        answer_id=str(run.answer_id or ""),
        answer_node_id=run.answer_node_id,
        last_seq=run.last_seq,
        abandoned=run.abandoned,
    )


def unsettled_to_wire(unsettled: Unsettled) -> pb.UnsettledRun:
    """A run that isn't in the books yet, without its messages and nodes, which may be gone."""
    run = pb.Run(
        run_id=str(unsettled.run_id),
        conversation_id=str(unsettled.conversation_id),
        status=_STATUSES_TO_WIRE[unsettled.status],
        partial=unsettled.partial,
        details=_details_to_wire(unsettled.details),
        usage=_usage_to_wire(unsettled.usage),
        heartbeat_at=time_to_wire(unsettled.heartbeat_at),
        created_at=time_to_wire(unsettled.created_at),
        ended_at=time_to_wire(unsettled.ended_at),
        last_seq=unsettled.last_seq,
        abandoned=unsettled.abandoned,
    )
    return pb.UnsettledRun(run=run, owner=unsettled.owner, subscription=unsettled.subscription)


def _details_to_wire(details: Details) -> pb.RunDetails:
    return pb.RunDetails(
        schema=details.schema,
        mode=details.mode,
        complexity=details.complexity,
        display_template=details.display_template,
        duration_ms=details.duration_ms,
        degraded=details.degraded,
        cost_eur=details.cost_eur,
        node_count=details.node_count,
        fallbacks=details.fallbacks,
        retries=details.retries,
    )


def _usage_to_wire(usage: Sequence[Usage]) -> list[run_pb2.Usage]:
    return [
        run_pb2.Usage(
            model=one.model,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            estimated=one.estimated,
        )
        for one in usage
    ]


def time_to_wire(at: datetime) -> Timestamp:
    """A moment."""
    stamp = Timestamp()
    stamp.FromDatetime(at)
    return stamp
