"""The events of a run as JSON objects: `type`, `seq`, `run_id`, `at`, and the fields of its type. Pure."""

from lintello.engine.v1 import engine_pb2 as pb

from gateway.wire import STEPS, Json, completed_from_wire, time_from_wire


def event_from_wire(event: pb.ThinkingEvent) -> Json | None:
    """An event as JSON; None for one of a type that this gateway doesn't know yet."""
    kind = event.WhichOneof("event")
    if kind is None:
        return None
    head: Json = {"type": kind, "run_id": event.run_id, "seq": event.seq, "at": time_from_wire(event.at)}
    return head | _fields(event, kind)


def _fields(event: pb.ThinkingEvent, kind: str) -> Json:
    match kind:
        case "run_started":
            started = event.run_started
            return {
                "conversation_id": started.conversation_id,
                "message_id": started.message_id,
                "parent_node_id": started.parent_node_id or None,
            }
        case "mode_switched":
            switched = event.mode_switched
            return {"from": getattr(switched, "from") or None, "to": switched.to, "reason": switched.reason}
        case "thinking_started":
            thinking = event.thinking_started
            return {
                "schema": thinking.schema,
                "mode": thinking.mode,
                "mode_name": thinking.mode_name,
                "complexity": thinking.complexity,
                "display_template": thinking.display_template,
            }
        case "thinking_step":
            return _step(event.thinking_step)
        case "content":
            return {"content": event.content.content}
        case "thinking_completed":
            return completed_from_wire(event.run_id, event.thinking_completed)
        case "error":
            return {"code": event.error.code, "message": event.error.message, "retryable": event.error.retryable}
        case "done":
            return _done(event.done)
    raise AssertionError(kind)


def _step(step: pb.ThinkingStep) -> Json:
    return {
        "step": step.step,
        "total": step.total,
        "status": STEPS[step.status],
        "summary": step.summary,
        "icon": step.icon,
        "role": step.role,
        "node_id": step.node_id,
        "parent_id": step.parent_id or None,
        "branch": step.branch or None,
        "model": step.model or None,
        "tokens": step.tokens,
        "score": step.score if step.HasField("score") else None,
        "duration_ms": step.duration_ms,
    }


def _done(done: pb.Done) -> Json:
    return {
        "conversation_id": done.conversation_id,
        "message_id": done.message_id or None,
        "node_id": done.node_id or None,
        "model": done.model or None,
        "tokens_used": done.tokens_used,
        "cost_eur": done.cost_eur,
        "thinking": done.thinking,
        "partial": done.partial,
        "degraded": done.degraded or None,
    }
