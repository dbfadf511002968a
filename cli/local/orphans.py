"""A server left behind by a supervisor that died: recognised by its command line, and stopped."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from cli.local.state import is_alive

PATIENCE = 8.0


def command_line(pid: int) -> str:
    """The process's command line; empty when it is gone or a zombie."""
    if sys.platform == "linux":
        try:
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            return ""
    command = ["/bin/ps", "-o", "command=", "-p", str(pid)]
    listing = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (a number)
    return listing.stdout.strip()


async def stop_orphan(pid_file: Path, mark: str, stop_signal: signal.Signals) -> None:
    """Stop the process a pid file names if its command line holds `mark`; kill it after eight seconds.

    The caller holds the data folder, so no supervisor alive can own that process. When the id belongs to another
    program by now (after a reboot, say) the file is removed: PostgreSQL would take that program for itself and refuse.
    """
    pid = _recorded(pid_file, mark)
    if pid is None:
        return
    for number in (stop_signal, signal.SIGKILL):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        for _ in range(int(PATIENCE / 0.02)):
            # A zombie (its parent hasn't asked yet) holds nothing any more; its command line is empty.
            if not is_alive(pid) or mark not in command_line(pid):
                return
            await asyncio.sleep(0.02)


def _recorded(pid_file: Path, mark: str) -> int | None:
    """The id in the file when it is of a process with that mark; a file that names some other process is removed."""
    try:
        pid = int(pid_file.read_text("utf-8").split("\n", 1)[0])
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if not is_alive(pid):
        return None
    if mark not in command_line(pid):
        pid_file.unlink(missing_ok=True)
        return None
    return pid
