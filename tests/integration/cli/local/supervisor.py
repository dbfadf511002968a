"""A supervisor of its own: `supervisor.py <data folder>` runs a stack of throw-away parts until a signal."""

import asyncio
import sys
from pathlib import Path

from cli.commands.up import cancel_on_signals
from cli.local.stack import Stack, StackOptions
from tests.integration.cli.local.parts import COMMANDS


async def supervise(folder: Path) -> None:
    """Run the stack, say when it is ready, wait for a signal."""
    cancel_on_signals()
    options = StackOptions(lambda *event: print(*event, flush=True), lambda _name, _line: None, data_dir=folder)
    async with Stack(options, COMMANDS) as stack:
        print(f"ready {stack.url}", flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """Run it; being asked to stop is no error."""
    try:
        asyncio.run(supervise(Path(sys.argv[1])))
    except asyncio.CancelledError:
        pass


if __name__ == "__main__":
    main()
