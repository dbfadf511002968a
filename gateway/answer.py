"""An answer, gathered from the events of its run."""

from typing import Any

from gateway.wire import Json

FAILED = "internal"


class AnswerBuilder:
    """Takes a run's events one by one; pure."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._notices: list[Json] = []
        self._started: Json = {}
        self._schema: str | None = None
        self._completed: Json | None = None
        self._done: Json | None = None

    def add(self, event: Json | None) -> None:
        """Take the next event; None, one of a type unknown here, is passed over."""
        if event is None:
            return
        match event["type"]:
            case "run_started":
                self._started = event
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
    def is_empty(self) -> bool:
        """True when the run ended without an answer, or its events broke off."""
        return self._done is None or (not self._content and self._done["message_id"] is None)

    @property
    def error_code(self) -> str:
        """What an empty answer is empty for: the code of the last error event."""
        if self._done is None:
            return "unavailable"
        return str(self._notices[-1]["code"]) if self._notices else FAILED

    def as_json(self) -> Json:
        """The answer, whole."""
        done = self._done
        assert done is not None
        return {
            "message": {"id": done["message_id"], "role": "assistant", "content": "".join(self._content)},
            "thinking": self._thinking(),
            "sources": [],
            "notices": self._notices,
            "conversation_id": self._started["conversation_id"],
            "run_id": self._started["run_id"],
            **{key: done[key] for key in ("node_id", "model", "tokens_used", "cost_eur", "partial", "degraded")},
        }

    def _thinking(self) -> dict[str, Any] | None:
        if self._completed is None:
            return None
        kept = ("tree_data", "tokens_used", "duration_ms", "display_template", "partial")
        return {"schema": self._schema, **{key: self._completed[key] for key in kept}}
