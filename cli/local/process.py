"""One supervised child process: its output, its death, its restart, its end."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cli.local.lifeline import inherited_lifeline
from cli.local.output import OnLine, Output, open_log

LAUNCH = Path(__file__).with_name("launch.py")
FIRST_BACKOFF = 0.2
LAST_BACKOFF = 5.0
STEADY_SECONDS = 10.0
"""A process that lived this long has recovered: its next restart is quick again."""

EventKind = Literal[
    "keys_created",
    "port_moved",
    "starting",
    "healthy",
    "metrics",
    "died",
    "restarted",
    "stopping",
    "killed",
    "stopped",
]
OnEvent = Callable[[EventKind, str, str], None]
"""Called with what happened, to which part, and a detail."""


@dataclass(frozen=True)
class Program:
    """What to run. `stop_signal` asks it to end; the kernel sends `death_signal` when the supervisor is gone."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    user: str | None = None
    folder: Path | None = None


class ChildProcess:
    """A program in its own process group. `start`, perhaps `keep_alive`, then `stop`; may be started once."""

    def __init__(
        self,
        program: Program,
        log: Path,
        *,
        on_line: OnLine,
        on_event: OnEvent,
        before_restart: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.program = program
        self._log = log
        self._on_line = on_line
        self._on_event = on_event
        self._before_restart = before_restart
        self._process: asyncio.subprocess.Process | None = None
        self._output: Output | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._stopped = False

    @property
    def pid(self) -> int:
        """The process id, also its group's; another one after a restart. 0 while it doesn't run."""
        return 0 if self._process is None or self._process.returncode is not None else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; minus the signal's number when one ended it."""
        return None if self._process is None else self._process.returncode

    async def start(self) -> None:
        """Start it once; its log begins anew when it had passed 5 MB. Raises OSError when it can't be started."""
        self._process, self._output = await spawn(self.program, self._log, self._on_line)

    async def wait(self) -> int:
        """Its exit code, once it has ended and its last lines are in."""
        assert self._process is not None
        assert self._output is not None
        code = await self._process.wait()
        await self._output.drained()
        return code

    def last_line(self) -> str:
        """The last line it wrote that isn't empty."""
        return "" if self._output is None else self._output.last_line()

    def keep_alive(self) -> None:
        """From now on start it again when it dies, after 0.2 s, twice as long each time, up to 5 s."""
        self._keeper = asyncio.ensure_future(self._keep_alive())

    @asynccontextmanager
    async def held_down(self) -> AsyncIterator[None]:
        """Kill it now; it is started again, and kept alive, only when the block ends."""
        await self._leave_alone()
        await self._end()
        self._on_event("died", self.program.name, describe_exit(self.exit_code or 0))
        try:
            yield
        finally:
            if not self._stopped:
                await self._revive(0)
                self.keep_alive()

    async def stop(self, grace: float) -> None:
        """Ask it to end, kill its group after `grace` seconds; afterwards nothing of its group is left."""
        self._stopped = True
        await self._leave_alone()
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.send_signal(self.program.stop_signal)
            try:
                await asyncio.wait_for(self._process.wait(), grace)
            except TimeoutError:
                self._on_event("killed", self.program.name, f"{grace:g}")
        await self._end()

    async def _keep_alive(self) -> None:
        loop = asyncio.get_running_loop()
        backoff = FIRST_BACKOFF
        while True:
            born = loop.time()
            code = await self.wait()
            await self._end()
            self._on_event("died", self.program.name, describe_exit(code))
            if loop.time() - born > STEADY_SECONDS:
                backoff = FIRST_BACKOFF
            backoff = await self._revive(backoff)

    async def _revive(self, backoff: float) -> float:
        """Start it again after so many seconds, later and later until it can be; how many to wait the next time."""
        while True:
            await asyncio.sleep(backoff)
            backoff = min(max(backoff * 2, FIRST_BACKOFF), LAST_BACKOFF)
            if await self._start_again():
                self._on_event("restarted", self.program.name, str(self.pid))
                return backoff

    async def _leave_alone(self) -> None:
        """No longer start it again when it dies."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
            self._keeper = None

    async def _start_again(self) -> bool:
        if self._before_restart is not None:
            await self._before_restart()
        try:
            await self.start()
        except OSError as error:
            # No memory or no descriptors just now: the next try may find some.
            self._on_event("died", self.program.name, error.strerror or type(error).__name__)
            return False
        return True

    async def _end(self) -> None:
        """Kill what is left of the group, the leader too when it still runs, and close its output."""
        assert self._process is not None
        assert self._output is not None
        kill_group(self._process.pid)
        await self._process.wait()
        await self._output.drained()
        self._output.close()


def describe_exit(code: int) -> str:
    """`exit code 1` or `SIGKILL`."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def kill_group(group: int) -> None:
    """SIGKILL to a process group that may be gone already."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        # macOS says so of a group that holds nothing but zombies.
        pass


def bare_environment() -> dict[str, str]:
    """For a server: nothing of ours, neither the secrets in our environment nor a variable that changes its ways."""
    environment = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
    if libraries := os.environ.get("LD_LIBRARY_PATH"):
        # Some builds of Python, which `launch.py` needs, find their own library only through it.
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


async def run(program: Program, log: Path, on_line: OnLine, sent: bytes = b"") -> tuple[int, str]:
    """Run a program to its end, with `sent` as its input: its exit code and its last line. Ends it if cancelled."""
    process, output = await spawn(program, log, on_line, sent)
    try:
        code = await process.wait()
        await output.drained()
        return code, output.last_line()
    finally:
        kill_group(process.pid)
        output.close()


async def spawn(
    program: Program, log: Path, on_line: OnLine, sent: bytes = b""
) -> tuple[asyncio.subprocess.Process, Output]:
    """Start a program that ends with us, in its own session, `sent` (at most a few kB) waiting as its input."""
    receive, write = os.pipe()
    source, feed = os.pipe()
    output = Output(program.name, open_log(log), on_line)
    lifeline = inherited_lifeline()
    process = None
    try:
        # Before the process: were we cancelled in an await after it, nobody would know of it.
        await asyncio.get_running_loop().connect_read_pipe(lambda: output, os.fdopen(receive, "rb", buffering=0))
        os.write(feed, sent)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(LAUNCH), str(os.getpid()), str(int(program.death_signal))),
            *(program.user or "-", "-" if lifeline is None else str(lifeline), *program.arguments),
            stdin=source,
            stdout=write,
            stderr=write,
            env=program.environment,
            cwd=program.folder,
            start_new_session=True,
            pass_fds=() if lifeline is None else (lifeline,),
        )
    finally:
        for descriptor in (write, source, feed):
            os.close(descriptor)
        if process is None:
            output.close()
    return process, output
