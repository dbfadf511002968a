"""Where a run stands, folded from its events. Pure: no screen, no socket."""

from dataclasses import dataclass, field
from typing import Any, Literal, cast

from cli.screen.format import number, one_line, text

Event = dict[str, Any]
"""One event of a run as the gateway sends it (CONTRACT, server-sent events)."""

StepStatus = Literal["started", "completed", "failed"]


@dataclass(frozen=True)
class Step:
    """One step of a think as last told. `duration_ms` and `tokens` are 0 until it has ended."""

    node_id: str
    number: int
    total: int
    status: StepStatus
    icon: str
    summary: str
    model: str
    tokens: int
    duration_ms: float

    @property
    def place(self) -> str:
        """`2/5`, or `2` while nobody knows how many there will be."""
        return f"{self.number}/{self.total}" if self.total else str(self.number)


@dataclass
class Progress:
    """What the events so far amount to."""

    run_id: str = ""
    conversation_id: str = ""
    steps: dict[str, Step] = field(default_factory=dict)
    """By node id, in the order in which they began."""
    answer: str = ""
    tree: dict[str, Any] | None = None
    """`tree_data` of the think, nested."""
    errors: list[str] = field(default_factory=list)
    done: Event | None = None
    """The last event, once it is there."""

    def apply(self, event: Event) -> None:
        """Take in the next event. Unknown types and fields change nothing."""
        match event.get("type"):
            case "run_started":
                self.run_id = text(event.get("run_id"))
                self.conversation_id = text(event.get("conversation_id"))
            case "thinking_step":
                step = read_step(event)
                self.steps[step.node_id] = step
            case "content":
                self.answer += text(event.get("content"))
            case "thinking_completed":
                tree = event.get("tree_data")
                self.tree = tree if isinstance(tree, dict) else None
            case "error":
                self.errors.append(one_line(text(event.get("message")) or text(event.get("code"))))
            case "done":
                self.done = event
                self.conversation_id = text(event.get("conversation_id")) or self.conversation_id

    @property
    def finished_steps(self) -> int:
        """How many steps are completed."""
        return sum(step.status == "completed" for step in self.steps.values())


def read_step(event: Event) -> Step:
    """The step a `thinking_step` event tells of."""
    status = event.get("status")
    place = int(number(event.get("step")))
    return Step(
        node_id=text(event.get("node_id")) or str(place),
        number=place,
        total=int(number(event.get("total"))),
        status=cast(StepStatus, status) if status in ("completed", "failed") else "started",
        icon=one_line(text(event.get("icon"))),
        summary=one_line(text(event.get("summary"))),
        model=one_line(text(event.get("model"))),
        tokens=int(number(event.get("tokens"))),
        duration_ms=number(event.get("duration_ms")),
    )
