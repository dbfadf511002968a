"""Between the wire and the engine's own types; nowhere else is a proto taken apart."""

from typing import Literal, cast

from google.protobuf import struct_pb2, timestamp_pb2
from lintello.common.v1 import node_pb2
from lintello.engine.v1 import engine_pb2 as pb
from lintello.treestore.v1 import treestore_pb2 as store

from kit.errors import InvalidField, TooLarge
from kit.ids import checked_id
from kit.text import byte_size, clean
from services.engine import events
from services.engine.domain import ALIASES, Ending, Finish, Node, Question, Started, Thinking, Turn
from services.engine.modes.catalog import Mode

MESSAGE_BYTES = 256 * 1024
NODE_ID_CHARACTERS = 50
SLUG_CHARACTERS = 50

_THINKING = {
    pb.THINKING_UNSPECIFIED: Thinking.AUTO,
    pb.THINKING_AUTO: Thinking.AUTO,
    pb.THINKING_ON: Thinking.ON,
    pb.THINKING_OFF: Thinking.OFF,
}
_STEP = {"started": pb.STEP_STATUS_STARTED, "completed": pb.STEP_STATUS_COMPLETED, "failed": pb.STEP_STATUS_FAILED}
_ENDING = {
    Ending.DONE: store.RUN_STATUS_DONE,
    Ending.PARTIAL: store.RUN_STATUS_PARTIAL,
    Ending.STOPPED: store.RUN_STATUS_STOPPED,
    Ending.FAILED: store.RUN_STATUS_FAILED,
}


def message_from_wire(message: str) -> str:
    """A user's text, cleaned. Raises InvalidField or TooLarge."""
    if byte_size(message) > MESSAGE_BYTES:
        raise TooLarge("message", f"at most {MESSAGE_BYTES} bytes")
    text = clean(message)
    if not text.strip():
        raise InvalidField("message", "must not be empty")
    return text


def locale_from_wire(locale: str, default: Literal["fr", "en"]) -> Literal["fr", "en"]:
    """A locale, or the default for none. Raises InvalidField."""
    if locale not in ("", "fr", "en"):
        raise InvalidField("locale", "must be fr or en")
    return cast(Literal["fr", "en"], locale or default)


def question_from_wire(request: pb.ThinkRequest, default_locale: Literal["fr", "en"]) -> Question:
    """A checked question. Raises InvalidField naming the field."""
    if request.model and request.model not in ALIASES:
        raise InvalidField("model", f"must be one of {', '.join(ALIASES)}")
    parent = request.parent_node_id if request.HasField("parent_node_id") else None
    if parent is not None and len(parent) > NODE_ID_CHARACTERS:
        raise InvalidField("parent_node_id", f"at most {NODE_ID_CHARACTERS} characters")
    if parent is not None and not request.conversation_id:
        raise InvalidField("parent_node_id", "needs a conversation_id")
    if len(request.mode) > SLUG_CHARACTERS:
        raise InvalidField("mode", f"at most {SLUG_CHARACTERS} characters")
    if request.thinking not in _THINKING:
        raise InvalidField("thinking", "must be AUTO, ON or OFF")
    if request.on_disconnect not in pb.OnDisconnect.values():
        raise InvalidField("on_disconnect", "must be STOP or CONTINUE")
    return Question(
        message=message_from_wire(request.message),
        conversation_id=checked_id("conversation_id", request.conversation_id) if request.conversation_id else "",
        parent_node_id=None if parent is None else clean(parent),
        mode=clean(request.mode),
        thinking=_THINKING[request.thinking],
        model=request.model or None,
        locale=locale_from_wire(request.locale, default_locale),
    )


def started_from_wire(answer: store.StartRunResponse) -> Started:
    """What a run starts from."""
    return Started(
        run_id=answer.run.run_id,
        conversation_id=answer.conversation.conversation_id,
        message_id=answer.run.message_id,
        parent_node_id=answer.run.parent_node_id,
        mode=answer.conversation.mode,
        mode_chosen_by_user=answer.conversation.mode_source == store.MODE_SOURCE_USER,
    )


def turn_from_wire(message: store.Message) -> Turn:
    """One message of the history."""
    return Turn("user" if message.role == store.ROLE_USER else "assistant", message.content)


def node_to_wire(node: Node) -> node_pb2.Node:
    """A finished node."""
    return node_pb2.Node(
        id=node.id,
        parents=node.parents,
        role=node_pb2.NodeRole.Value(f"NODE_ROLE_{node.role.value.upper()}"),
        status=node_pb2.NodeStatus.Value(f"NODE_STATUS_{node.status.value.upper()}"),
        branch=node.branch,
        summary=clean(node.summary),
        content=clean(node.content),
        score=node.score,
        input_tokens=node.input_tokens,
        output_tokens=node.output_tokens,
        model=clean(node.model),
        message_id=node.message_id,
        run_id=node.run_id,
        failure=node.failure,
        fallback_from=clean(node.fallback_from),
        duration_ms=node.duration_ms,
    )


def finish_to_wire(finish: Finish) -> store.FinishRunRequest:
    """How a run ended."""
    details = finish.details
    return store.FinishRunRequest(
        run_id=finish.run_id,
        status=_ENDING[finish.ending],
        partial=finish.partial,
        message_id=finish.message_id,
        content=clean(finish.content),
        nodes=[node_to_wire(node) for node in finish.nodes],
        active_node_id=finish.active_node_id,
        usage=[
            store.Usage(
                model=clean(line.model),
                input_tokens=line.input_tokens,
                output_tokens=line.output_tokens,
                estimated=line.estimated,
            )
            for line in finish.usage
        ],
        details=store.RunDetails(
            schema=details.schema,
            mode=details.mode,
            complexity=details.complexity,
            display_template=details.display_template,
            duration_ms=details.duration_ms,
            degraded=details.degraded,
            cost_eur=details.cost_eur,
        ),
        mode=finish.mode,
        mode_source=store.MODE_SOURCE_USER if finish.mode_chosen_by_user else store.MODE_SOURCE_DETECTED,
        model=clean(finish.model),
    )


def event_to_wire(run_id: str, numbered: events.Numbered) -> pb.ThinkingEvent:
    """One event of a run."""
    at = timestamp_pb2.Timestamp()
    at.FromDatetime(numbered.at)
    wire = pb.ThinkingEvent(run_id=run_id, seq=numbered.seq, at=at)
    match numbered.event:
        case events.Content(content):
            wire.content.content = clean(content)
        case events.RunStarted(conversation_id, message_id, parent_node_id):
            wire.run_started.CopyFrom(
                pb.RunStarted(conversation_id=conversation_id, message_id=message_id, parent_node_id=parent_node_id)
            )
        case events.ModeSwitched(before, to, reason):
            wire.mode_switched.CopyFrom(pb.ModeSwitched(**{"from": before, "to": to, "reason": reason}))
        case events.ThinkingStarted() as event:
            wire.thinking_started.CopyFrom(pb.ThinkingStarted(**vars(event)))
        case events.ThinkingStep() as event:
            fields = {**vars(event), "status": _STEP[event.status], "summary": clean(event.summary)}
            wire.thinking_step.CopyFrom(pb.ThinkingStep(**fields))
        case events.ThinkingCompleted() as event:
            nodes = [node_to_wire(node) for node in event.nodes]
            totals = {"tokens_used": event.input_tokens + event.output_tokens, "node_count": len(nodes)}
            wire.thinking_completed.CopyFrom(pb.ThinkingCompleted(**{**vars(event), "nodes": nodes, **totals}))
        case events.Trouble(code, message, retryable):
            wire.error.CopyFrom(pb.Error(code=code, message=message, retryable=retryable))
        case events.Done() as event:
            wire.done.CopyFrom(pb.Done(**vars(event)))
    return wire


def mode_to_wire(mode: Mode, locale: Literal["fr", "en"], may_think: bool) -> pb.Mode:
    """A mode as it is shown in a locale, to a user who may think in it or not."""
    config = struct_pb2.Struct()
    if mode.config is not None:
        config.update(mode.config.model_dump(mode="json"))
    return pb.Mode(
        slug=mode.slug,
        name=mode.name[locale],
        icon=mode.icon,
        thinking_schema=mode.schema,
        thinking_config=config if mode.config is not None else None,
        display_template=mode.display_template,
        discovery=mode.discovery,
        enabled=mode.enabled,
        may_think=may_think,
    )
