"""Event sequences of a run, as CONTRACT has them."""

import json
from typing import Any

Event = dict[str, Any]

RUN = "0198c1a0-0000-7000-8000-000000000001"
CONVERSATION = "0198c1a0-0000-7000-8000-000000000002"

STARTED = {
    "decompose": ("🔍", "Décomposition de la tâche…"),
    "execute": ("📊", "Travail sur une étape…"),
    "critique": ("🔎", "Relecture critique…"),
    "synthesize": ("🎯", "Rédaction de la réponse…"),
}
CHAIN = (
    ("decompose", "Deux étapes retenues"),
    ("execute", "Budget estimé"),
    ("execute", "Risques listés"),
    ("critique", "Le calendrier manque"),
    ("synthesize", "Réponse complète"),
)
ANSWER = ("La coopérative ", "se finance ", "de **trois** façons.")


def step(number: int, role: str, status: str, summary: str, tokens: int = 0, duration_ms: int = 0) -> Event:
    icon = {"started": STARTED[role][0], "completed": "✅", "failed": "⚠️"}[status]
    return {
        "type": "thinking_step",
        "step": number,
        "total": len(CHAIN),
        "status": status,
        "summary": summary,
        "icon": icon,
        "role": role,
        "node_id": f"n{number}",
        "parent_id": f"n{number - 1}" if number > 1 else None,
        "branch": None,
        "model": "small",
        "tokens": tokens,
        "score": None,
        "duration_ms": duration_ms,
    }


def run_started() -> Event:
    return {"type": "run_started", "conversation_id": CONVERSATION, "message_id": "m1", "parent_node_id": None}


def thinking_started() -> Event:
    return {
        "type": "thinking_started",
        "schema": "chain",
        "mode": "recherche",
        "mode_name": "Recherche",
        "complexity": 4,
        "display_template": "steps",
    }


def content(piece: str) -> Event:
    return {"type": "content", "content": piece}


def completed(nodes: list[Event], partial: bool = False) -> Event:
    return {
        "type": "thinking_completed",
        "tree_data": {"format": 1, "schema": "chain", "nodes": nodes, "runs": {}},
        "tokens_used": 1700,
        "input_tokens": 1200,
        "output_tokens": 500,
        "node_count": len(CHAIN),
        "duration_ms": 6200,
        "cost_eur": 0.00031,
        "display_template": "steps",
        "partial": partial,
    }


def done(**changes: Any) -> Event:
    return {
        "type": "done",
        "conversation_id": CONVERSATION,
        "message_id": "m2",
        "node_id": "n5",
        "model": "essai-small",
        "tokens_used": 1700,
        "cost_eur": 0.00031,
        "thinking": True,
        "partial": False,
        "degraded": None,
    } | changes


def node(number: int, role: str, summary: str, children: list[Event], **changes: Any) -> Event:
    return {
        "id": f"n{number}",
        "role": role,
        "branch": "",
        "summary": summary,
        "status": "selected" if role == "synthesize" else "explored",
        "score": None,
        "tokens": 340,
        "model": "essai-small",
        "parents": [f"n{number - 1}"] if number > 1 else [],
        "children": children,
    } | changes


def chain_tree() -> list[Event]:
    below: list[Event] = []
    for number, (role, summary) in reversed(list(enumerate(CHAIN, 1))):
        below = [node(number, role, summary, below)]
    return below


def numbered(events: list[Event]) -> list[Event]:
    return [{"run_id": RUN, "seq": seq, "at": "2026-01-01T00:00:00Z", **event} for seq, event in enumerate(events, 1)]


def chain() -> list[Event]:
    """A think of five steps; its last step ends after the answer, as synthesis does."""
    events = [run_started(), thinking_started()]
    for number, (role, summary) in enumerate(CHAIN, 1):
        events.append(step(number, role, "started", STARTED[role][1]))
        if role == "synthesize":
            events.extend(content(piece) for piece in ANSWER)
        events.append(step(number, role, "completed", summary, 340, 1240))
    return numbered([*events, completed(chain_tree()), done()])


def classic() -> list[Event]:
    switched = {"type": "mode_switched", "from": "conversation", "to": "redaction", "reason": "detected"}
    pieces = [content(piece) for piece in ANSWER]
    return numbered([run_started(), switched, *pieces, done(thinking=False, tokens_used=57, cost_eur=0.00001)])


def failed_think() -> list[Event]:
    """The first node fails; a classic answer follows."""
    return numbered(
        [
            run_started(),
            thinking_started(),
            step(1, "decompose", "started", STARTED["decompose"][1]),
            step(1, "decompose", "failed", "Le modèle n'a pas répondu", 0, 2000),
            completed([node(1, "decompose", "Le modèle n'a pas répondu", [], failure="timeout")], partial=True),
            *(content(piece) for piece in ANSWER),
            done(thinking=False, degraded="failed"),
        ]
    )


def broken() -> list[Event]:
    """The stream of the model breaks after the answer began."""
    error = {"type": "error", "code": "model_failed", "message": "Le modèle s'est interrompu.", "retryable": True}
    return numbered([run_started(), content(ANSWER[0]), error, done(thinking=False, partial=True)])


def frames(events: list[Event]) -> list[bytes]:
    """The bytes of each server-sent event."""
    return [f"id: {event['seq']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode() for event in events]
