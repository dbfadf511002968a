"""An embedded Valkey on a Unix socket, with an append-only file."""

import asyncio
import os
import shutil
import signal
import tempfile
from pathlib import Path
from urllib.parse import quote

from cli.local.binaries import valkey_binary
from cli.local.errors import StartFailed, StartTimeout
from cli.local.folder import DataFolder
from cli.local.orphans import stop_orphan
from cli.local.output import OnLine
from cli.local.process import ChildProcess, OnEvent, Program, bare_environment

NAME = "valkey"
LONGEST_SOCKET_PATH = 100
"""Bytes; the systems' own limits are 103 (macOS) and 107 (Linux)."""
READY_SECONDS = 30.0


class EmbeddedValkey:
    """Valkey in a data folder this process holds. `start`, then `url`, then `stop`."""

    def __init__(self, folder: DataFolder, *, on_line: OnLine, on_event: OnEvent) -> None:
        self._folder = folder
        self._on_line = on_line
        self._on_event = on_event
        self._socket = folder.valkey / "valkey.sock"
        self._short_folder: Path | None = None
        self._child: ChildProcess | None = None

    @property
    def url(self) -> str:
        """`unix:///…sock`."""
        return f"unix://{quote(str(self._socket))}"

    @property
    def child(self) -> ChildProcess | None:
        """The server's process; None before `start` and after `stop`."""
        return self._child

    @property
    def pid(self) -> int:
        """The server's process id; 0 while it doesn't run."""
        return 0 if self._child is None else self._child.pid

    async def start(self) -> None:
        """Start the server, return when it answers; keep it alive. Raises BinariesMissing, StartFailed, StartTimeout.

        A server left in the folder by a killed supervisor is stopped first.
        """
        binary = valkey_binary()
        await self._stop_orphan()
        if len(os.fsencode(self._socket)) > LONGEST_SOCKET_PATH:
            self._short_folder = Path(tempfile.mkdtemp(prefix="lintello-", dir="/tmp"))
            self._socket = self._short_folder / "valkey.sock"
        self._child = ChildProcess(
            self._program(binary),
            self._folder.logs / f"{NAME}.log",
            on_line=self._on_line,
            on_event=self._on_event,
            before_restart=self._stop_orphan,
        )
        await self._child.start()
        await self._wait_ready(self._child)
        self._child.keep_alive()

    async def stop(self, grace: float = 5.0) -> None:
        """Ask it to write what it has and end; killed after `grace` seconds."""
        if self._child is not None:
            await self._child.stop(grace)
            self._child = None
        if self._short_folder is not None:
            shutil.rmtree(self._short_folder, ignore_errors=True)
            self._short_folder = None

    def _program(self, binary: Path) -> Program:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "dir": str(self._folder.valkey),
            "pidfile": str(self._pid_file),
            "daemonize": "no",
            # Otherwise the title shown is the socket's, which needn't be in our folder.
            "set-proc-title": "no",
        }
        arguments = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return Program(
            NAME,
            (str(binary), *arguments),
            bare_environment(),
            stop_signal=signal.SIGTERM,
            death_signal=signal.SIGTERM,
            folder=Path("/"),
        )

    @property
    def _pid_file(self) -> Path:
        return self._folder.valkey / "valkey.pid"

    async def _stop_orphan(self) -> None:
        await stop_orphan(self._pid_file, f"--dir {self._folder.valkey} ", signal.SIGTERM)

    async def _wait_ready(self, child: ChildProcess) -> None:
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not await self._answers():
            if child.exit_code is not None:
                raise StartFailed(NAME, await child.wait(), child.last_line())
            if asyncio.get_running_loop().time() > deadline:
                raise StartTimeout(NAME, READY_SECONDS)
            await asyncio.sleep(0.01)

    async def _answers(self) -> bool:
        """Whether it says PONG; while it reads its file it answers with an error instead."""
        try:
            reader, writer = await asyncio.open_unix_connection(str(self._socket))
        except OSError:
            return False
        try:
            writer.write(b"PING\r\n")
            return (await reader.readline()).startswith(b"+PONG")
        except ConnectionError:
            return False
        finally:
            writer.close()
