"""`lintello` as a user runs it: a process with pipes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

PATIENCE = 60


@dataclass(frozen=True)
class Outcome:
    """How it ended."""

    code: int
    output: str
    errors: str


async def lintello(*arguments: str, given: str = "", settings: Mapping[str, str] | None = None) -> Outcome:
    """Run a command to its end, with this on its standard input and only these settings."""
    async with started(*arguments, settings=settings) as process:
        return await outcome(process, given)


@asynccontextmanager
async def started(
    *arguments: str, settings: Mapping[str, str] | None = None
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that runs; killed at the end of the block if it still does."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LINTELLO_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cli.main", *arguments),
        env=kept | dict(settings or {}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def outcome(process: asyncio.subprocess.Process, given: str = "") -> Outcome:
    """Wait for its end."""
    output, errors = await asyncio.wait_for(process.communicate(given.encode()), PATIENCE)
    return Outcome(process.returncode or 0, output.decode(), errors.decode())


def interrupt(process: asyncio.subprocess.Process) -> None:
    """What Ctrl-C does."""
    process.send_signal(signal.SIGINT)
