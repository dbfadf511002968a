"""`lintello ask`: one question, its steps live, its answer, its tree."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Any

from cli.commands.client import StreamCut
from cli.commands.credentials import own_token
from cli.commands.failure import DONE, FAILED, WRONG_USAGE, Failure
from cli.commands.gateways import Gateways
from cli.commands.stack_url import Target, find_stack
from cli.screen.progress import Progress
from cli.screen.view import View
from cli.texts import say

STOP_SECONDS = 3.0
"""How long stopping a run, and hearing what it kept, may take."""


def ask(
    question: str | None,
    mode: str | None,
    think: str,
    conversation: str | None,
    model: str | None,
    as_json: bool,
    url: str | None,
    data_dir: Path | None,
) -> int:
    """Ask, show, and give the exit code. Raises Failure."""
    message = read_question(question)
    target = find_stack(url, data_dir)
    options = {"conversation_id": conversation, "mode": mode, "model": model}
    body = {"message": message, "thinking": think, **{key: value for key, value in options.items() if value}}
    try:
        return asyncio.run(answer(target, body, choose_view(as_json)))
    except KeyboardInterrupt:
        return FAILED


def read_question(argument: str | None) -> str:
    """The question of the command line, or for `-` or none in a pipe the standard input.

    Raises Failure (wrong usage) when there is none.
    """
    question = argument
    if argument == "-" or (argument is None and not sys.stdin.isatty()):
        question = sys.stdin.read()
    if question is None or not question.strip():
        raise Failure(say("usage.question"), WRONG_USAGE)
    return question.strip()


def choose_view(as_json: bool) -> View:
    """JSON when asked for; else live in a terminal and lines in a pipe."""
    if as_json:
        from cli.screen.raw import RawView

        return RawView(sys.stdout)
    if sys.stdout.isatty():
        from rich.console import Console

        from cli.screen.live import LiveView

        return LiveView(Console())
    from cli.screen.plain import PlainView

    return PlainView(sys.stdout)


async def answer(target: Target, body: dict[str, Any], view: View, progress: Progress | None = None) -> int:
    """Ask one question and show its run: the exit code. Cancelling it stops the run and says what was kept.

    Raises Failure when the question is refused.
    """
    run = Progress() if progress is None else progress
    async with Gateways(target.urls, own_token()) as gateways:
        notice = say("model.trial") if target.trial_model else None
        reading = asyncio.ensure_future(_read(gateways, body, view, run, notice))
        try:
            await asyncio.shield(reading)
        except asyncio.CancelledError:
            await _stop(gateways, run, reading)
            raise
        except StreamCut:
            print(
                say("run.cut", id=run.conversation_id) if run.conversation_id else say("run.cut_early"), file=sys.stderr
            )
            return FAILED
    for error in run.errors:
        print(error, file=sys.stderr)
    return FAILED if run.errors else DONE


async def _read(gateways: Gateways, body: dict[str, Any], view: View, run: Progress, notice: str | None) -> None:
    try:
        async with aclosing(gateways.follow(body, lambda: view.notice(say("run.returning")))) as events:
            async for raw, event in events:
                if notice is not None:
                    view.notice(notice)
                    notice = None
                run.apply(event)
                view.show(raw, event, run)
    finally:
        view.close(run)


async def _stop(gateways: Gateways, run: Progress, reading: asyncio.Future[None]) -> None:
    """Stop the run, wait a moment for how it ends, and say what was kept."""
    try:
        async with asyncio.timeout(STOP_SECONDS):
            # A question that was sent may have been accepted: the run's name comes within moments.
            while not run.run_id and not reading.done():  # noqa: ASYNC110 events are folded, nobody is woken
                await asyncio.sleep(0.05)
            if run.run_id and run.done is None:
                await gateways.stop(run.run_id)
                await asyncio.wait({reading})
    except TimeoutError:
        # Whoever doesn't answer now won't keep the user waiting.
        pass
    except StreamCut:
        print(say("stopped.unsure"), file=sys.stderr)
    except Failure as failure:
        print(failure, file=sys.stderr)
    finally:
        reading.cancel()
        await asyncio.wait({reading})
        if not reading.cancelled():
            # Whatever it ended with, the user left: it is read so that nobody reports it.
            reading.exception()
        print(_kept(run), file=sys.stderr)


def _kept(run: Progress) -> str:
    if not run.run_id:
        return say("stopped.nothing")
    kept = "stopped.steps_and_answer" if run.answer else "stopped.steps"
    return say(kept, steps=run.finished_steps, id=run.conversation_id)
