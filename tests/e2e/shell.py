"""The command line as a person types it: real processes."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

READY = "LintellO is ready: "


@dataclass(frozen=True)
class Ended:
    """What a command left."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Up:
    """A `lintello up` that is ready."""

    process: asyncio.subprocess.Process
    url: str
    folder: Path

    def family(self) -> list[psutil.Process]:
        """Itself and every process it has started."""
        itself = psutil.Process(self.process.pid)
        return [itself, *itself.children(recursive=True)]


def clean_environment(**settings: str) -> dict[str, str]:
    """What a command sees: the path, a home, UTF-8, and these settings."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", **settings}


async def lintello(*arguments: str, **settings: str) -> Ended:
    """Run one command to its end."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli.main",
        *arguments,
        env=clean_environment(**settings),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return Ended(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def running(folder: Path, *arguments: str, **settings: str) -> AsyncIterator[Up]:
    """`lintello up` in a data folder; ended with Ctrl-C's signal if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli.main",
        "up",
        "--data-dir",
        str(folder),
        *arguments,
        env=clean_environment(**settings),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            url = await _ready(process.stdout)
        yield Up(process, url, folder)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGINT)
            await process.communicate()


async def _ready(lines: asyncio.StreamReader) -> str:
    async for line in lines:
        if line.decode().startswith(READY):
            return line.decode().removeprefix(READY).strip()
    raise AssertionError("up ended before it was ready")


def let_servers_in(folder: Path) -> None:
    """As root the embedded PostgreSQL runs as another user, who must be able to reach a folder made for root."""
    if os.geteuid() == 0:
        for place in (folder, *folder.parents):
            if not place.stat().st_mode & 0o001:
                place.chmod(place.stat().st_mode | 0o011)
