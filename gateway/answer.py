"""An answer, gathered from the events of its run."""

from typing import Any

from gateway.problems import REASONS
from gateway.wire import Json

LOST = "events_lost"
"""What a run says of itself when its pieces are kept no more; the answer is in its conversation."""


class AnswerBuilder:
    """Takes a run's events one by one; pure."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._notices: list[Json] = []
        self._schema: str | None = None
        self._completed: Json | None = None
        self._done: Json | None = None

    def add(self, event: Json | None) -> None:
        """Take the next event; None, one of a type unknown here, is passed over."""
        if event is None:
            return
        match event["type"]:
            case "content":
                self._content.append(event["content"])
            case "thinking_started":
                self._schema = event["schema"]
            case "thinking_completed":
                self._completed = event
            case "error":
                self._notices.append({key: event[key] for key in ("code", "message", "retryable")})
            case "done":
                self._done = event

    @property
    def is_done(self) -> bool:
        """Whether the last event has been taken."""
        return self._done is not None

    @property
    def failure(self) -> str | None:
        """Why there is no answer: a reason of `gateway.problems`; None when there is one."""
        if self._done is None:
            return "UNAVAILABLE"
        error = self._notices[-1] if self._notices else {"code": "internal", "retryable": False}
        if error["code"] == LOST:
            return "EVENTS_EXPIRED"
        if self._content or self._done["message_id"] is not None:
            return None
        reason = str(error["code"]).upper()
        if reason in REASONS:
            return reason
        return "UNAVAILABLE" if error["retryable"] else "INTERNAL"

    def as_json(self) -> Json:
        """The answer, whole."""
        done = self._done
        assert done is not None
        return {
            "message": {"id": done["message_id"], "role": "assistant", "content": "".join(self._content)},
            "thinking": self._thinking(),
            "sources": [],
            "notices": self._notices,
            "conversation_id": done["conversation_id"],
            "run_id": done["run_id"],
            **{key: done[key] for key in ("node_id", "model", "tokens_used", "cost_eur", "partial", "degraded")},
        }

    def _thinking(self) -> dict[str, Any] | None:
        if self._completed is None:
            return None
        kept = ("tree_data", "tokens_used", "duration_ms", "display_template", "partial")
        return {"schema": self._schema, **{key: self._completed[key] for key in kept}}
