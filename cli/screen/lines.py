"""The single lines both views of a run show: notices between the steps, and the last line."""

from cli.screen.format import euros, number, one_line, seconds, text, tokens
from cli.screen.progress import Event, Progress, Step
from cli.texts import say


def step_line(step: Step) -> str:
    """`🔍 1/5 Décomposition…`, and once it has ended `✅ 1/5 …  (1.2 s, 340 tokens)`."""
    line = f"{step.icon} {step.place} {step.summary}"
    return line if step.status == "started" else f"{line}  ({step_cost(step)})"


def step_cost(step: Step) -> str:
    """`1.2 s, 340 tokens`."""
    return f"{seconds(step.duration_ms)}, {tokens(step.tokens)}"


def notice_line(event: Event) -> str | None:
    """One line for an event that is neither a step nor a piece of the answer; None when there is nothing to say."""
    match event.get("type"):
        case "mode_switched":
            return say("run.mode_switched", mode=one_line(text(event.get("to"))))
        case "thinks_quota_exceeded" | "quota_exceeded":
            link = one_line(text(event.get("link")))
            return " ".join(filter(None, ("⏳", one_line(text(event.get("message"))), link)))
        case "sources":
            found = event.get("sources")
            titles = [one_line(text(source.get("title"))) for source in found] if isinstance(found, list) else []
            return say("run.sources", titles=" · ".join(titles)) if titles else None
        case "thinking_started":
            schema = text(event.get("schema"))
            return say(
                "run.thinking_started",
                mode=one_line(text(event.get("mode_name")) or text(event.get("mode"))),
                schema=say(f"schema.{schema}") if schema in ("chain", "tree", "refine") else one_line(schema),
                complexity=int(number(event.get("complexity"))),
            )
        case "thinking_completed":
            line = say(
                "run.thinking_completed",
                nodes=int(number(event.get("node_count"))),
                tokens=tokens(int(number(event.get("tokens_used")))),
                duration=seconds(number(event.get("duration_ms"))),
            )
            return f"{line} · {say('run.interrupted')}" if event.get("partial") else line
        case "tool_call":
            return f"🔧 {one_line(text(event.get('name')))} {one_line(text(event.get('summary')))}".rstrip()
    return None


def last_line(progress: Progress) -> str:
    """Conversation id, model, tokens and cost of a run that is done."""
    done = progress.done or {}
    parts = [
        say("run.conversation", id=progress.conversation_id),
        one_line(text(done.get("model"))),
        tokens(int(number(done.get("tokens_used")))),
        euros(number(done.get("cost_eur"))),
        say("run.partial") if done.get("partial") else "",
    ]
    return " · ".join(filter(None, parts))
