"""What must hold after a soak: nothing lost, nothing counted twice, nothing left behind."""

import asyncio
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable

from cli.trial.completion import text_of
from cli.trial.ledger import Call
from kit.model import estimate_tokens
from tests.e2e.client import Event
from tests.faults.processes import service_of
from tests.faults.site import Site
from tests.faults.soak_clients import Question
from tests.faults.soak_report import Report
from tests.faults.usage import Usage

MARKER = re.compile(r"repère[0-9a-f]{32}")
SETTLED_SECONDS = 90.0
"""For the last runs of dead engines to be closed and recorded: 20 s of silence, a janitor's round, and patience."""
FREE_SECONDS = 40.0
"""For leases to run out, and for idle connections to be closed."""
POOL = 2 * 10
"""What the pool of one service process may open in PostgreSQL (kit.database)."""
AROUND_MESSAGE = 4
"""Tokens a message has besides its text (kit.model.tokens)."""
PIECE_TOKENS = 3
"""The longest piece of a stream the trial model sends: it may be sent and not yet in its ledger."""


async def settled(site: Site, report: Report) -> None:
    """Wait until no run goes on and every one is in the books."""
    query = "SELECT id FROM treestore.run WHERE status = 'running' OR usage_recorded_at IS NULL"
    try:
        async with asyncio.timeout(SETTLED_SECONDS):
            while await site.sql(query):
                await asyncio.sleep(0.5)
    except TimeoutError:
        for row in await site.sql("SELECT id, status, usage_recorded_at FROM treestore.run"):
            run = f"run {row['id']} is {row['status']}"
            report.expect("runs left running", row["status"] != "running", run)
            report.expect("usage not recorded", row["usage_recorded_at"] is not None, run)


async def check_readers(questions: Iterable[Question], report: Report) -> None:
    """Every reader that stayed or returned has the whole run, each event once, the same as every other reader."""
    for question in questions:
        report.expect("clients", not question.problem, f"{question.kind}, run {question.run_id}: {question.problem}")
        report.expect("clients", bool(question.run_id), f"{question.kind}: its question was never accepted")
        for reader in question.readers:
            left = question.kind == "leave_for_good"
            report.expect("done", reader.done or left, f"{question.kind}, run {question.run_id}: no done")
            order = not reader.events or reader.events[0]["type"] == "run_started"
            report.expect("order", order, f"{question.kind}, run {question.run_id}: it doesn't begin with run_started")
        ended = [reader.events for reader in question.readers if reader.done]
        for events in ended[1:]:
            difference = _difference(events, ended[0])
            report.expect("readers", not difference, f"{question.kind}, run {question.run_id}: {difference}")


def _difference(one: list[Event], other: list[Event]) -> str:
    """Where two readers saw different things; empty: nowhere.

    When an engine dies, one may have seen more than was written down: then both see the same as far as both see it,
    and each is told that the run was interrupted.
    """
    ends = [[(event["type"], event.get("code")) for event in events[-2:]] for events in (one, other)]
    interrupted = ends == [[("error", "interrupted"), ("done", None)]] * 2
    if interrupted:
        one, other = _said(one), _said(other)
    common = min(len(one), len(other))
    if one[:common] == other[:common] and (interrupted or len(one) == len(other)):
        return ""
    place = next((place for place in range(common) if one[place] != other[place]), common)
    tails = " / ".join(str([event["type"] for event in events[place:][:4]]) for events in (one, other))
    return f"two readers saw different events from {place + 1} on: {tails}"


def _said(events: list[Event]) -> list[Event]:
    """What a run whose engine died said before its end was told in its place."""
    said = events[:-2]
    while said and said[-1]["type"] == "content" and not said[-1]["content"]:
        said = said[:-1]
    return said


async def check_messages(site: Site, questions: Iterable[Question], report: Report) -> None:
    """Every question that was accepted is in its conversation, once, and so is the answer that was read."""
    for question in questions:
        if not question.conversation_id:
            continue
        path = f"/api/conversations/{question.conversation_id}/messages"
        messages = (await site.user.get(path, limit="100"))["items"]
        mine = [message for message in messages if question.marker in message["content"]]
        asked = [message for message in mine if message["role"] == "user"]
        report.expect(
            "user messages", len(asked) == 1, f"run {question.run_id}: its question is there {len(asked)} times"
        )
        reader = question.readers[0]
        codes = {event.get("code") for event in reader.events}
        if not reader.done or "not_saved" in codes:
            continue
        kept = [message["content"] for message in messages if message["id"] == reader.events[-1]["message_id"]]
        said = [reader.answer] if reader.events[-1]["message_id"] else []
        if "events_lost" in codes:
            # The end of the answer didn't reach this reader, who was told that it is in the conversation.
            kept = [content[: len(reader.answer)] for content in kept]
        report.expect("answers", kept == said, f"run {question.run_id}: what is kept isn't what was said")


async def check_books(site: Site, questions: Iterable[Question], report: Report) -> None:
    """usage_log has each run once; its tokens are those of the model's own ledger."""
    rows = await site.usage()
    runs = {str(row["id"]): row for row in await site.sql("SELECT id, abandoned FROM treestore.run")}
    report.expect(
        "books",
        set(rows) == set(runs),
        f"runs not in the books: {sorted(set(runs) - set(rows))}, in the books alone: {sorted(set(rows) - set(runs))}",
    )
    calls = _calls_by_marker(site.trial.calls)
    report.counts |= {"runs": len(runs), "abandoned": sum(row["abandoned"] for row in runs.values())}
    exact = 0
    for question in questions:
        usage = rows.get(question.run_id)
        if usage is None:
            continue
        exact += not usage.estimated
        mine = calls.get(question.marker, [])
        trouble = await _differs(site, question, usage, mine)
        if trouble:
            abandoned = " (abandoned)" if runs.get(question.run_id, {}).get("abandoned") else ""
            made = ", ".join(_described(call) for call in mine)
            report.problems["tokens"].append(f"{question.kind}, run {question.run_id}{abandoned}: {trouble}; {made}")
    report.counts["runs whose tokens are exactly the model's own"] = exact


def _calls_by_marker(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """The model's calls by the question they were made for: the last one that is quoted in their prompts."""
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        texts = [text_of(message) for message in call.body["messages"]]
        words = [word for text in reversed(texts) for word in MARKER.findall(text)[:1]]
        if words:
            found[words[0]].append(call)
    return found


async def _differs(site: Site, question: Question, usage: Usage, calls: list[Call]) -> str:
    """What is wrong with a run's usage; empty: nothing."""
    whole = [call for call in calls if call.status == 200 and not call.aborted and call.ended_at is not None]
    cut = [call for call in calls if call.aborted]
    completed = sum(call.prompt_tokens + call.completion_tokens for call in whole)
    if not usage.estimated:
        by_model: dict[str, int] = defaultdict(int)
        for call in whole:
            by_model[call.model] += call.prompt_tokens + call.completion_tokens
        return "" if usage.by_model == by_model else f"recorded {usage.by_model}, the model says {dict(by_model)}"
    at_most = completed + sum(_estimated_at_most(call) for call in cut)
    if usage.tokens > at_most:
        return f"recorded {usage.tokens}, the model says at most {at_most}"
    if usage.tokens >= completed or usage.tokens == await _tokens_in_tree(site, question):
        return ""
    return f"recorded {usage.tokens}, the model says at least {completed}"


def _described(call: Call) -> str:
    cut = " cut" if call.aborted else ""
    return f"{call.role} {call.status} {call.prompt_tokens}+{call.completion_tokens}{cut}"


def _estimated_at_most(call: Call) -> int:
    """What may be counted for a call that was cut short, where only an estimate can be had."""
    prompt = sum(estimate_tokens(text_of(message)) + AROUND_MESSAGE for message in call.body["messages"])
    sent = math.ceil((call.completion_tokens + PIECE_TOKENS) * 4 / 3.3)
    return max(prompt, call.prompt_tokens) + sent


async def _tokens_in_tree(site: Site, question: Question) -> int:
    """The tokens of the nodes of a run: all that is known of one whose engine died."""
    tree = await site.user.get(f"/api/conversations/{question.conversation_id}/tree", shape="flat")
    nodes = [node for node in tree["tree_data"]["nodes"] if node["run_id"] == question.run_id]
    return sum(node["input_tokens"] + node["output_tokens"] for node in nodes)


async def check_nothing_left(site: Site, report: Report) -> None:
    """No lease, no socket, no database connection, no transaction, no fault in a log."""
    try:
        async with asyncio.timeout(FREE_SECONDS):
            while await site.slots_taken() or site.trial.connections:
                await asyncio.sleep(0.5)
    except TimeoutError:
        report.expect("leases", await site.slots_taken() == 0, f"{await site.slots_taken()} are still taken")
        report.expect("sockets", site.trial.connections == 0, f"{site.trial.connections} to the model are still open")
    processes = [name for name in site.processes.names if service_of(name) in ("treestore", "quota")]
    connections = await site.database_connections()
    report.expect("database", connections <= POOL * len(processes), f"{connections} connections are open")
    report.counts["database connections"] = connections
    idle = await site.sql(
        "SELECT pid FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' "
        "AND xact_start < now() - interval '5 seconds'"
    )
    report.expect("database", not idle, f"{len(idle)} transactions were left open")
    running = (await site.user.get("/api/runs", status="running"))["items"]
    report.expect("runs left running", not running, f"{len(running)} by the gateway's list")
    for log in sorted((site.stack.folder / "logs").glob("*.log")):
        for line in log.read_text("utf-8", "replace").splitlines():
            if (fault := _fault(line)) is not None:
                report.problems["faults in logs"].append(f"{log.name}: {fault}")


def _fault(line: str) -> str | None:
    """What a line of a log says went wrong; None: nothing, or that a server was away, as it was made to be."""
    if line.startswith("Traceback"):
        return line
    try:
        event = json.loads(line)
    except json.JSONDecodeError:
        return None
    name = str(event.get("event", ""))
    if event.get("logger") != "asyncio" and (event.get("level") != "error" or name.endswith("_away")):
        return None
    frames = event.get("frames") or [event.get("place", "")]
    return f"{name} {event.get('error_type', '')} {event.get('reason', '')} {frames[-1]}"
