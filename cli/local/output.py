"""What a child process writes: cut into lines, for its log and for whoever wants them."""

import asyncio
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

LOG_LIMIT = 5 * 1024 * 1024
LINE_LIMIT = 64 * 1024

OnLine = Callable[[str, str], None]
"""Called with a part's name and one line it wrote, without its end."""


def open_log(path: Path) -> FileIO:
    """The log to add to, begun anew when it had passed 5 MB."""
    log = FileIO(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    if os.fstat(log.fileno()).st_size > LOG_LIMIT:
        log.truncate(0)
    return log


class Output(asyncio.Protocol):
    """Cuts a process's output into lines, for the callback and the log."""

    def __init__(self, name: str, log: FileIO, on_line: OnLine) -> None:
        self._name = name
        self._log = log
        self._on_line = on_line
        self._rest = b""
        self._last_line = ""
        self._ended = asyncio.Event()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.Protocol."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._take(line)

    def connection_lost(self, _error: Exception | None) -> None:
        """See asyncio.Protocol."""
        if self._rest:
            self._take(self._rest)
        self._log.close()
        self._ended.set()

    def last_line(self) -> str:
        """The last line that isn't empty."""
        return self._last_line

    async def drained(self) -> None:
        """Wait for the end of the output, not longer than half a second: a grandchild may hold it open."""
        try:
            await asyncio.wait_for(self._ended.wait(), 0.5)
        except TimeoutError:
            pass

    def close(self) -> None:
        """Read no more of it."""
        if self._transport is not None:
            self._transport.close()

    def _take(self, line: bytes) -> None:
        self._log.write(line + b"\n")
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self._last_line = text
        self._on_line(self._name, text)
