"""`lintello demo`, which `make demo` runs: the stack, one hard question, then it stays up."""

import asyncio
import os
import shlex
import sys
from pathlib import Path

from cli.commands.ask import answer, choose_view
from cli.commands.failure import DONE, FAILED
from cli.commands.settings import check_settings
from cli.commands.stack_url import Target
from cli.commands.up import cancel_on_signals, running_stack
from cli.screen.progress import Progress
from cli.texts import say

MODE = "recherche"


def demo(data_dir: Path | None) -> int:
    """Run the demo: the exit code. `DEMO_EXIT=1` leaves once it is over. Raises Failure."""
    check_settings()
    return asyncio.run(_demo(data_dir, stay=os.environ.get("DEMO_EXIT") != "1"))


async def _demo(data_dir: Path | None, stay: bool) -> int:
    cancel_on_signals()
    over = False
    try:
        async with running_stack(None, None, data_dir, None) as stack:
            print("\n" + say("demo.asking", question=say("demo.question")) + "\n", flush=True)
            run = Progress()
            body = {"message": say("demo.question"), "mode": MODE, "thinking": "on"}
            code = await answer(Target((stack.url,)), body, choose_view(as_json=False), run)
            if code == DONE:
                print("\n" + "\n".join(closing_lines(stack.url, run.conversation_id, data_dir)), flush=True)
            over = True
            if stay:
                await asyncio.Event().wait()
            return code
    except asyncio.CancelledError:
        return DONE if over else FAILED


def closing_lines(url: str, conversation_id: str, data_dir: Path | None) -> list[str]:
    """The page, how to ask, how to see the tree, how to set a real key, how to stop."""
    command = os.path.relpath(Path(sys.executable).with_name("lintello"))
    folder = "" if data_dir is None else f" --data-dir {shlex.quote(str(data_dir))}"
    return [
        say("demo.page", url=url),
        say("demo.ask", command=command, folder=folder),
        say("demo.tree", command=command, id=conversation_id, folder=folder),
        say("demo.key"),
        say("demo.stop"),
    ]
