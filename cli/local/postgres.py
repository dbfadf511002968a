"""An embedded PostgreSQL: its cluster made once, its server run as our child, durable and small."""

import asyncio
import os
import shutil
import signal
from pathlib import Path

from cli.local.binaries import postgres_binaries
from cli.local.errors import StartFailed, StartTimeout
from cli.local.folder import DataFolder, give_to_server_user, server_user
from cli.local.keys import Keys
from cli.local.orphans import stop_orphan
from cli.local.output import OnLine
from cli.local.ports import LOOPBACK, free_port, is_free
from cli.local.process import ChildProcess, OnEvent, Program, bare_environment, run

NAME = "postgres"
ROLE = "lintello"
DATABASE = "lintello"
READY_SECONDS = 60.0
PORT_TRIES = 5
STATUS_LINE = 7
"""The line of postmaster.pid, from 0, where the server says `ready` (what pg_ctl waits for)."""

SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",
    # Small: one machine, one stack.
    "shared_buffers": "32MB",
    "max_connections": "60",
    "jit": "off",
    "io_method": "sync",
    "max_worker_processes": "2",
    "max_parallel_workers": "0",
    "max_parallel_workers_per_gather": "0",
    "max_logical_replication_workers": "0",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # Durable, said once more whatever the cluster's file says.
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    # The text of statements and the values in a DETAIL line are people's content: they stay out of the log.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_statement": "none",
    "log_checkpoints": "off",
}


class EmbeddedPostgres:
    """PostgreSQL in a data folder this process holds. `start`, then `url`, then `stop`."""

    def __init__(self, folder: DataFolder, keys: Keys, *, on_line: OnLine, on_event: OnEvent) -> None:
        self._folder = folder
        self._keys = keys
        self._on_line = on_line
        self._on_event = on_event
        self._home = Path()
        self._port = 0
        self._child: ChildProcess | None = None

    @property
    def url(self) -> str:
        """`postgresql://lintello:<password>@127.0.0.1:<port>/lintello`; the role owns the database."""
        return f"postgresql://{ROLE}:{self._keys.postgres_password}@{LOOPBACK}:{self._port}/{DATABASE}"

    @property
    def child(self) -> ChildProcess | None:
        """The server's process; None before `start` and after `stop`."""
        return self._child

    @property
    def pid(self) -> int:
        """The server's process id; 0 while it doesn't run."""
        return 0 if self._child is None else self._child.pid

    async def start(self) -> None:
        """Make the cluster if there is none, start the server, return when it takes connections; keep it alive.

        A server left in the folder by a killed supervisor is stopped first. Raises BinariesMissing, StartFailed,
        StartTimeout.
        """
        binaries = await asyncio.to_thread(postgres_binaries)
        self._home = self._folder.database_home()
        await self._stop_orphan()
        if not (self._home / "PG_VERSION").exists():
            await self._create_cluster(binaries)
        for attempt in range(PORT_TRIES):
            self._port = free_port()
            self._child = self._server(binaries)
            await self._child.start()
            if await self._ready(self._child):
                self._child.keep_alive()
                return
            # Between choosing the port and binding it somebody else may have taken it.
            if is_free(self._port) or attempt == PORT_TRIES - 1:
                raise StartFailed(NAME, self._child.exit_code or 0, self._child.last_line())
            await self._child.stop(0)

    async def stop(self, grace: float = 8.0) -> None:
        """Fast shutdown; killed after `grace` seconds, which costs a recovery at the next start and no data."""
        if self._child is not None:
            await self._child.stop(grace)
            self._child = None

    def _server(self, binaries: Path) -> ChildProcess:
        settings = [f"--{name}={value}" for name, value in {**SETTINGS, "port": str(self._port)}.items()]
        # SIGINT is PostgreSQL's fast shutdown; SIGTERM would wait for every client to leave.
        program = self._program(binaries / "postgres", "-D", str(self._home), *settings, stop_signal=signal.SIGINT)
        return ChildProcess(
            program,
            self._folder.logs / f"{NAME}.log",
            on_line=self._on_line,
            on_event=self._on_event,
            before_restart=self._stop_orphan,
        )

    async def _stop_orphan(self) -> None:
        await stop_orphan(self._home / "postmaster.pid", f"-D {self._home} ", signal.SIGINT)

    async def _ready(self, child: ChildProcess) -> bool:
        """True when the server takes connections, False when it ended instead. Raises StartTimeout."""
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while child.exit_code is None:
            if self._says_ready(child.pid):
                return True
            if asyncio.get_running_loop().time() > deadline:
                raise StartTimeout(NAME, READY_SECONDS)
            await asyncio.sleep(0.01)
        await child.wait()
        return False

    def _says_ready(self, pid: int) -> bool:
        try:
            lines = (self._home / "postmaster.pid").read_text("utf-8").splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > STATUS_LINE and lines[0] == str(pid) and lines[STATUS_LINE].strip() == "ready"

    async def _create_cluster(self, binaries: Path) -> None:
        """initdb, then role and database, in a draft folder that gets its name when it is whole."""
        draft = self._home.with_name(f"{self._home.name}.new")
        password = self._home.with_name(f"{self._home.name}.password")
        shutil.rmtree(draft, ignore_errors=True)
        password.unlink(missing_ok=True)
        draft.mkdir(mode=0o700)
        give_to_server_user(draft)
        try:
            _write_password(password, self._keys.postgres_superuser_password)
            await self._run_once(
                self._program(
                    binaries / "initdb",
                    *("-D", str(draft), "--username=postgres", f"--pwfile={password}", "--auth=scram-sha-256"),
                    *("--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8", "--no-instructions"),
                )
            )
        finally:
            password.unlink(missing_ok=True)
        # Single-user mode takes one statement a line; nothing listens yet.
        statements = (
            f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{self._keys.postgres_password}'\n"
            f"CREATE DATABASE {DATABASE} OWNER {ROLE}\n"
        )
        single = self._program(
            binaries / "postgres",
            *("--single", "-D", str(draft), "-c", "exit_on_error=on", "-c", "log_min_error_statement=panic"),
            *("-c", "log_checkpoints=off", "postgres"),
        )
        await self._run_once(single, statements.encode("ascii"))
        draft.rename(self._home)

    async def _run_once(self, program: Program, sent: bytes = b"") -> None:
        # What initdb tells of its progress is for the log alone.
        code, line = await run(program, self._folder.logs / "initdb.log", lambda _name, _line: None, sent)
        if code != 0:
            raise StartFailed(program.name, code, line)

    def _program(self, binary: Path, *arguments: str, stop_signal: signal.Signals = signal.SIGTERM) -> Program:
        return Program(
            NAME if binary.name == "postgres" else binary.name,
            (str(binary), *arguments),
            bare_environment(),
            stop_signal=stop_signal,
            death_signal=signal.SIGINT if stop_signal == signal.SIGINT else signal.SIGKILL,
            user=server_user(),
            folder=Path("/"),
        )


def _write_password(path: Path, password: str) -> None:
    """A file for initdb, which its own user can read; those in keys/ it can't."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(password + "\n")
    give_to_server_user(path)
