"""Between the wire of the services and the JSON of the outside: one pure function a type.

What is absent on the wire (an empty text, a zero that means unknown) is null in JSON.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import node_pb2, run_pb2
from lintello.engine.v1 import engine_pb2 as engine
from lintello.treestore.v1 import treestore_pb2 as treestore

from gateway.tree import RunFacts, tree_data

Json = dict[str, Any]

MODE_SOURCES = {treestore.MODE_SOURCE_USER: "user", treestore.MODE_SOURCE_DETECTED: "detected"}
ROLES = {treestore.ROLE_USER: "user", treestore.ROLE_ASSISTANT: "assistant"}
THINKING = {"auto": engine.THINKING_AUTO, "on": engine.THINKING_ON, "off": engine.THINKING_OFF}
STEPS = {
    engine.STEP_STATUS_STARTED: "started",
    engine.STEP_STATUS_COMPLETED: "completed",
    engine.STEP_STATUS_FAILED: "failed",
}


def time_from_wire(stamp: Timestamp) -> str:
    """RFC 3339 in UTC, with a Z and milliseconds."""
    return f"{stamp.ToDatetime().isoformat(timespec='milliseconds')}Z"


def node_from_wire(node: node_pb2.Node) -> Json:
    """A node, flat."""
    found: Json = {
        "id": node.id,
        "role": node_pb2.NodeRole.Name(node.role).removeprefix("NODE_ROLE_").lower(),
        "branch": node.branch or None,
        "summary": node.summary,
        "content": node.content,
        "score": node.score if node.HasField("score") else None,
        "status": node_pb2.NodeStatus.Name(node.status).removeprefix("NODE_STATUS_").lower(),
        "tokens": node.input_tokens + node.output_tokens,
        "input_tokens": node.input_tokens,
        "output_tokens": node.output_tokens,
        "model": node.model or None,
        "message_id": node.message_id or None,
        "run_id": node.run_id,
        "duration_ms": node.duration_ms,
        "parents": list(node.parents),
    }
    if node.failure:
        found["failure"] = node.failure
    if node.fallback_from:
        found["fallback_from"] = node.fallback_from
    return found


def run_from_wire(run: treestore.Run) -> RunFacts:
    """What a tree says of a run."""
    details = run.details
    return RunFacts(
        schema=details.schema or None,
        mode=details.mode or None,
        complexity=details.complexity or None,
        display_template=details.display_template or None,
        partial=run.partial,
    )


def listed_run_from_wire(run: engine.Run) -> Json:
    """A run of the list."""
    return {
        "run_id": run.run_id,
        "conversation_id": run.conversation_id,
        "status": run_pb2.RunStatus.Name(run.status).removeprefix("RUN_STATUS_").lower(),
        "started_at": time_from_wire(run.started_at),
        "ended_at": time_from_wire(run.ended_at) if run.HasField("ended_at") else None,
        "last_seq": run.last_seq,
    }


def conversation_from_wire(conversation: treestore.Conversation) -> Json:
    """A conversation of the list."""
    return {
        "id": conversation.conversation_id,
        "title": conversation.title,
        "mode": conversation.mode or None,
        "mode_source": MODE_SOURCES.get(conversation.mode_source),
        "active_node_id": conversation.active_node_id or None,
        "created_at": time_from_wire(conversation.created_at),
        "updated_at": time_from_wire(conversation.updated_at),
    }


def message_from_wire(message: treestore.Message, nodes: Iterable[node_pb2.Node]) -> Json:
    """A message with what its run left; `nodes` are those of the tree, of any run."""
    run = message.run if message.HasField("run") else None
    return {
        "id": message.message_id,
        "role": ROLES[message.role],
        "content": message.content,
        "run_id": message.run_id or None,
        "node_id": message.node_id or None,
        "reply_to": message.reply_to or None,
        "model": message.model or None,
        "tokens": message.tokens,
        "partial": run.partial if run else False,
        "created_at": time_from_wire(message.created_at),
        "thinking": thinking_from_run(run, nodes) if run and run.details.schema else None,
        "sources": [],
    }


def thinking_from_run(run: treestore.Run, nodes: Iterable[node_pb2.Node]) -> Json:
    """What a run thought."""
    own = [node_from_wire(node) for node in nodes if node.run_id == run.run_id]
    facts = run_from_wire(run)
    return {
        "schema": facts.schema,
        "tree_data": orjson.Fragment(tree_data(own, {run.run_id: facts}, nested=True)),
        "tokens_used": sum(node["tokens"] for node in own),
        "duration_ms": run.details.duration_ms,
        "display_template": facts.display_template,
        "partial": facts.partial,
    }


def tree_from_wire(tree: treestore.GetTreeResponse, nested: bool) -> Json:
    """A conversation's whole tree."""
    nodes = [node_from_wire(node) for node in tree.nodes]
    runs = {run.run_id: run_from_wire(run) for run in tree.runs}
    return {
        "tree_data": orjson.Fragment(tree_data(nodes, runs, nested)),
        "active_node_id": tree.active_node_id or None,
        "version": tree.version,
    }


def mode_from_wire(mode: engine.Mode) -> Json:
    """A mode."""
    return {
        "slug": mode.slug,
        "name": mode.name,
        "icon": mode.icon,
        "thinking_schema": mode.thinking_schema or None,
        "thinking_config": (
            _whole(json_format.MessageToDict(mode.thinking_config)) if mode.HasField("thinking_config") else None
        ),
        "display_template": mode.display_template or None,
        "discovery": mode.discovery,
        "enabled": mode.enabled,
        "may_think": mode.may_think,
    }


def completed_from_wire(run_id: str, event: engine.ThinkingCompleted) -> Json:
    """The fields of `thinking_completed`."""
    facts = RunFacts(event.schema, event.mode, event.complexity, event.display_template, event.partial)
    nodes = [node_from_wire(node) for node in event.nodes]
    return {
        "tree_data": orjson.Fragment(tree_data(nodes, {run_id: facts}, nested=True)),
        "tokens_used": event.tokens_used,
        "input_tokens": event.input_tokens,
        "output_tokens": event.output_tokens,
        "node_count": event.node_count,
        "duration_ms": event.duration_ms,
        "cost_eur": event.cost_eur,
        "display_template": event.display_template,
        "partial": event.partial,
    }


def _whole(value: Any) -> Any:
    """The same with whole numbers as integers: Struct knows only floats. Its depth is bounded by protobuf's parser."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case Mapping():
            return {key: _whole(inner) for key, inner in value.items()}
        case list():
            return [_whole(inner) for inner in value]
    return value
