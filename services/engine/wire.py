"""Between the wire and the engine's own types; nowhere else is a proto taken apart."""

import hashlib
from dataclasses import replace
from datetime import UTC
from typing import Literal, cast

from google.protobuf import struct_pb2, timestamp_pb2
from lintello.common.v1 import node_pb2, run_pb2
from lintello.engine.v1 import engine_pb2 as pb
from lintello.quota.v1 import quota_pb2 as quota
from lintello.treestore.v1 import treestore_pb2 as store

from kit.errors import InvalidField, TooLarge
from kit.ids import checked_id
from kit.text import byte_size, clean
from services.engine.domain import (
    ALIASES,
    Degraded,
    Details,
    Finish,
    ModelUsage,
    Node,
    Question,
    RunRecord,
    Started,
    Thinking,
    Turn,
    Unsettled,
)
from services.engine.modes.catalog import Mode
from services.engine.ports import RunUsage

MESSAGE_BYTES = 256 * 1024
NODE_ID_CHARACTERS = 50
SLUG_CHARACTERS = 50
KEY_CHARACTERS = 200

_THINKING = {
    pb.THINKING_UNSPECIFIED: Thinking.AUTO,
    pb.THINKING_AUTO: Thinking.AUTO,
    pb.THINKING_ON: Thinking.ON,
    pb.THINKING_OFF: Thinking.OFF,
}
_STATUS_OF: dict[int, Literal["running", "done", "partial", "stopped", "failed"]] = {
    run_pb2.RUN_STATUS_RUNNING: "running",
    run_pb2.RUN_STATUS_DONE: "done",
    run_pb2.RUN_STATUS_PARTIAL: "partial",
    run_pb2.RUN_STATUS_STOPPED: "stopped",
    run_pb2.RUN_STATUS_FAILED: "failed",
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
    key = request.idempotency_key
    if len(key) > KEY_CHARACTERS or not (key.isascii() and key.isprintable()):
        raise InvalidField("idempotency_key", f"at most {KEY_CHARACTERS} printable ASCII characters")
    question = Question(
        message=message_from_wire(request.message),
        conversation_id=checked_id("conversation_id", request.conversation_id) if request.conversation_id else "",
        parent_node_id=None if parent is None else clean(parent),
        mode=clean(request.mode),
        thinking=_THINKING[request.thinking],
        model=request.model or None,
        locale=locale_from_wire(request.locale, default_locale),
        idempotency_key=key,
    )
    return replace(question, request_hash=request_hash(question)) if key else question


def request_hash(question: Question) -> bytes:
    """SHA-256 of all that makes two requests with one key the same request.

    Each part stands behind its length, so that no two questions give the same bytes.
    """
    parent = question.parent_node_id
    parts = (
        "lintello question 1",
        question.message,
        question.conversation_id,
        "active" if parent is None else f"at {parent}",
        question.mode,
        question.thinking.value,
        question.model or "",
        question.locale,
    )
    encoded = [part.encode() for part in parts]
    return hashlib.sha256(b"".join(len(part).to_bytes(4) + part for part in encoded)).digest()


def started_from_wire(answer: store.StartRunResponse) -> Started:
    """What a run starts from."""
    return Started(
        run_id=answer.run.run_id,
        conversation_id=answer.conversation.conversation_id,
        message_id=answer.run.message_id,
        parent_node_id=answer.run.parent_node_id,
        mode=answer.conversation.mode,
        mode_chosen_by_user=answer.conversation.mode_source == store.MODE_SOURCE_USER,
        event_key=answer.event_key,
    )


def run_from_wire(run: store.Run, event_key: bytes = b"") -> RunRecord:
    """A run as the ledger has it."""
    details = run.details
    return RunRecord(
        run_id=run.run_id,
        conversation_id=run.conversation_id,
        status=_STATUS_OF[run.status],
        partial=run.partial,
        abandoned=run.abandoned,
        last_seq=run.last_seq,
        answer_id=run.answer_id,
        answer_node_id=run.answer_node_id,
        details=Details(
            schema=details.schema,
            mode=details.mode,
            complexity=details.complexity,
            display_template=details.display_template,
            duration_ms=details.duration_ms,
            degraded=cast(Degraded, details.degraded),
            cost_eur=details.cost_eur,
            node_count=details.node_count,
            fallbacks=details.fallbacks,
            retries=details.retries,
        ),
        usage=tuple(
            ModelUsage(line.model, line.input_tokens, line.output_tokens, line.estimated) for line in run.usage
        ),
        started_at=run.created_at.ToDatetime(UTC),
        ended_at=run.ended_at.ToDatetime(UTC) if run.HasField("ended_at") else None,
        heartbeat_at=run.heartbeat_at.ToDatetime(UTC) if run.HasField("heartbeat_at") else None,
        event_key=event_key,
    )


def unsettled_from_wire(unsettled: store.UnsettledRun) -> Unsettled:
    """A run that isn't in the books yet."""
    return Unsettled(run_from_wire(unsettled.run), unsettled.owner, unsettled.subscription)


def run_to_wire(run: RunRecord) -> pb.Run:
    """A run as its user sees it; one whose engine has fallen silent is partial."""
    status = run_pb2.RunStatus.Value(f"RUN_STATUS_{('partial' if run.silent else run.status).upper()}")
    wire = pb.Run(run_id=run.run_id, conversation_id=run.conversation_id, status=status, last_seq=run.last_seq)
    wire.started_at.FromDatetime(run.started_at)
    if run.ended_at is not None:
        wire.ended_at.FromDatetime(run.ended_at)
    return wire


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
        status=run_pb2.RunStatus.Value(f"RUN_STATUS_{finish.ending.value.upper()}"),
        partial=finish.partial,
        message_id=finish.message_id,
        content=clean(finish.content),
        nodes=[node_to_wire(node) for node in finish.nodes],
        active_node_id=finish.active_node_id,
        usage=[_usage_to_wire(line) for line in finish.usage],
        details=store.RunDetails(
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
        ),
        mode=finish.mode,
        mode_source=store.MODE_SOURCE_USER if finish.mode_chosen_by_user else store.MODE_SOURCE_DETECTED,
        model=clean(finish.model),
        last_seq=finish.last_seq,
    )


def run_usage_to_wire(run: RunUsage) -> quota.RecordUsageRequest:
    """One run for the books."""
    details = run.details
    started_at = timestamp_pb2.Timestamp()
    started_at.FromDatetime(run.started_at)
    return quota.RecordUsageRequest(
        run_id=run.run_id,
        status=run_pb2.RunStatus.Value(f"RUN_STATUS_{run.ending.value.upper()}"),
        mode=details.mode,
        schema=details.schema,
        node_count=details.node_count,
        usage=[_usage_to_wire(line) for line in run.usage],
        cost_eur=details.cost_eur,
        fallbacks=details.fallbacks,
        retries=details.retries,
        partial=run.partial,
        duration_ms=details.duration_ms,
        started_at=started_at,
    )


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


def _usage_to_wire(line: ModelUsage) -> run_pb2.Usage:
    return run_pb2.Usage(
        model=clean(line.model),
        input_tokens=line.input_tokens,
        output_tokens=line.output_tokens,
        estimated=line.estimated,
    )
