"""Between the events of a run and the wire, both ways: for those who follow a run, and for its replay log."""

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Literal, cast

from lintello.common.v1 import node_pb2
from lintello.engine.v1 import engine_pb2 as pb

from kit.text import clean
from services.engine.domain import Degraded, Node, Role, Status
from services.engine.events import (
    Content,
    Done,
    Event,
    ModeSwitched,
    Numbered,
    RunStarted,
    ThinkingCompleted,
    ThinkingStarted,
    ThinkingStep,
    Trouble,
)
from services.engine.wire import node_to_wire

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = {"started": pb.STEP_STATUS_STARTED, "completed": pb.STEP_STATUS_COMPLETED, "failed": pb.STEP_STATUS_FAILED}
_STEP_OF: dict[int, Literal["started", "completed", "failed"]] = {
    pb.STEP_STATUS_STARTED: "started",
    pb.STEP_STATUS_COMPLETED: "completed",
    pb.STEP_STATUS_FAILED: "failed",
}
_ROLE_OF = {node_pb2.NodeRole.Value(f"NODE_ROLE_{role.value.upper()}"): role for role in Role}
_STATUS_OF = {node_pb2.NodeStatus.Value(f"NODE_STATUS_{status.value.upper()}"): status for status in Status}

Reason = Literal["requested", "detected"]


class UnknownEvent(Exception):
    """An event of a kind that this version doesn't know; the text quotes nothing of it."""


def event_to_wire(run_id: str, numbered: Numbered) -> pb.ThinkingEvent:
    """One event of a run. Text that a model or a setting gave is cleaned."""
    wire = pb.ThinkingEvent(run_id=run_id, seq=numbered.seq)
    # By hand: FromDatetime takes as long as all the rest, and this is done for each piece of an answer.
    since = numbered.at - _EPOCH
    wire.at.seconds = since.days * 86_400 + since.seconds
    wire.at.nanos = since.microseconds * 1000
    match numbered.event:
        case Content(content):
            wire.content.content = clean(content)
        case RunStarted() as event:
            wire.run_started.CopyFrom(pb.RunStarted(**_fields(event)))
        case ModeSwitched(before, to, reason):
            wire.mode_switched.CopyFrom(pb.ModeSwitched(**{"from": before, "to": to, "reason": reason}))
        case ThinkingStarted() as event:
            wire.thinking_started.CopyFrom(pb.ThinkingStarted(**_fields(event)))
        case ThinkingStep() as event:
            texts = {"summary": clean(event.summary), "model": clean(event.model)}
            wire.thinking_step.CopyFrom(pb.ThinkingStep(**{**_fields(event), **texts, "status": _STEP[event.status]}))
        case ThinkingCompleted() as event:
            nodes = [node_to_wire(node) for node in event.nodes]
            totals = {"tokens_used": event.input_tokens + event.output_tokens, "node_count": len(nodes)}
            wire.thinking_completed.CopyFrom(pb.ThinkingCompleted(**{**_fields(event), "nodes": nodes, **totals}))
        case Trouble() as event:
            wire.error.CopyFrom(pb.Error(**_fields(event)))
        case Done() as event:
            wire.done.CopyFrom(pb.Done(**{**_fields(event), "model": clean(event.model)}))
    return wire


def _fields(event: Event) -> dict[str, Any]:
    return {field.name: getattr(event, field.name) for field in fields(event)}


def event_from_wire(wire: pb.ThinkingEvent) -> Numbered:
    """One event, as it was put on the wire. Raises UnknownEvent."""
    return Numbered(wire.seq, wire.at.ToDatetime(UTC), _event(wire))


def _event(wire: pb.ThinkingEvent) -> Event:
    match wire.WhichOneof("event"):
        case "content":
            return Content(wire.content.content)
        case "run_started":
            run = wire.run_started
            return RunStarted(run.conversation_id, run.message_id, run.parent_node_id)
        case "mode_switched":
            switch = wire.mode_switched
            return ModeSwitched(getattr(switch, "from"), switch.to, cast(Reason, switch.reason))
        case "thinking_started":
            think = wire.thinking_started
            return ThinkingStarted(think.schema, think.mode, think.mode_name, think.complexity, think.display_template)
        case "thinking_step":
            return _step(wire.thinking_step)
        case "thinking_completed":
            return _completed(wire.thinking_completed)
        case "error":
            return Trouble(wire.error.code, wire.error.message, wire.error.retryable)
        case "done":
            return _done(wire.done)
        case _:
            raise UnknownEvent("an event of an unknown kind")


def _step(step: pb.ThinkingStep) -> ThinkingStep:
    if step.status not in _STEP_OF:
        raise UnknownEvent("a step of an unknown status")
    return ThinkingStep(
        step=step.step,
        total=step.total,
        status=_STEP_OF[step.status],
        summary=step.summary,
        icon=step.icon,
        role=step.role,
        node_id=step.node_id,
        parent_id=step.parent_id,
        branch=step.branch,
        model=step.model,
        tokens=step.tokens,
        score=step.score if step.HasField("score") else None,
        duration_ms=step.duration_ms,
    )


def _completed(think: pb.ThinkingCompleted) -> ThinkingCompleted:
    return ThinkingCompleted(
        nodes=tuple(_node(node) for node in think.nodes),
        input_tokens=think.input_tokens,
        output_tokens=think.output_tokens,
        duration_ms=think.duration_ms,
        cost_eur=think.cost_eur,
        schema=think.schema,
        mode=think.mode,
        complexity=think.complexity,
        display_template=think.display_template,
        partial=think.partial,
    )


def _done(done: pb.Done) -> Done:
    return Done(
        conversation_id=done.conversation_id,
        message_id=done.message_id,
        node_id=done.node_id,
        model=done.model,
        tokens_used=done.tokens_used,
        cost_eur=done.cost_eur,
        thinking=done.thinking,
        partial=done.partial,
        degraded=cast(Degraded, done.degraded),
    )


def _node(node: node_pb2.Node) -> Node:
    if node.role not in _ROLE_OF or node.status not in _STATUS_OF:
        raise UnknownEvent("a node of an unknown role or status")
    return Node(
        id=node.id,
        parents=tuple(node.parents),
        role=_ROLE_OF[node.role],
        status=_STATUS_OF[node.status],
        summary=node.summary,
        content=node.content,
        model=node.model,
        run_id=node.run_id,
        input_tokens=node.input_tokens,
        output_tokens=node.output_tokens,
        duration_ms=node.duration_ms,
        branch=node.branch,
        score=node.score if node.HasField("score") else None,
        message_id=node.message_id,
        failure=node.failure,
        fallback_from=node.fallback_from,
    )
