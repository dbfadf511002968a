"""A whole stack on this machine: servers, migrations, trial model and services, started and stopped together."""

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from cli.local import services
from cli.local.environment import Places, child_environment, is_set, wants_trial_model
from cli.local.errors import PortTaken, StartFailed, StartTimeout
from cli.local.folder import DataFolder, choose_path, open_folder
from cli.local.health import Check, listens
from cli.local.keys import Keys, create_missing_keys, encryption_file, read_keys
from cli.local.ports import LOOPBACK, Reservation, free_port, is_free, reserve
from cli.local.postgres import EmbeddedPostgres
from cli.local.process import ChildProcess, EventKind, OnEvent, OnLine, Program, run
from cli.local.services import COMMANDS, GATEWAY, GRPC_BLOCK, GRPC_OFFSETS, MIGRATE, TRIAL, Commands
from cli.local.state import State, remove_state, write_state
from cli.local.tasks import together, uninterrupted
from cli.local.valkey import EmbeddedValkey

HEALTHY_SECONDS = 60.0
PORT_TRIES = 5
STOP_SECONDS = 9.0
"""All of it is stopped, or killed, within this time of being asked; a second is left for the caller's own."""


@dataclass(frozen=True)
class StackOptions:
    """What a stack is asked to be. A port that is None is the default one, or the next that is free."""

    on_event: OnEvent
    on_line: OnLine
    port: int | None = None
    grpc_port: int | None = None
    data_dir: Path | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Stack:
    """`async with Stack(options) as stack:` everything is healthy inside, nothing of it is left after.

    Raises one of `cli.local.errors` when it can't start; what had been started is stopped then.
    """

    def __init__(self, options: StackOptions, commands: Commands = COMMANDS) -> None:
        self._options = options
        self._commands = commands
        self._environment = options.environment
        self._folder: DataFolder | None = None
        self._keys: Keys | None = None
        self._postgres: EmbeddedPostgres | None = None
        self._valkey: EmbeddedValkey | None = None
        self._children: dict[str, ChildProcess] = {}
        self._reservations: list[Reservation] = []
        self._trial_port: int | None = None
        self._gateway_port = 0
        self._grpc_port = 0
        self._up = False

    @property
    def url(self) -> str:
        """Where the gateway answers."""
        return f"http://{LOOPBACK}:{self._gateway_port}"

    @property
    def addresses(self) -> dict[str, str]:
        """gRPC `host:port` by service."""
        return {name: f"{LOOPBACK}:{self._grpc_port + offset}" for name, offset in GRPC_OFFSETS.items()}

    @property
    def folder(self) -> Path:
        """The data folder."""
        assert self._folder is not None
        return self._folder.path

    @property
    def database_url(self) -> str:
        """The embedded PostgreSQL's URL; empty when another one was given."""
        return "" if self._postgres is None else self._postgres.url

    @property
    def redis_url(self) -> str:
        """The embedded Valkey's URL; empty when another one was given."""
        return "" if self._valkey is None else self._valkey.url

    @property
    def trial_model(self) -> bool:
        """Whether the trial model answers, for want of a real one."""
        return self._trial_port is not None

    @property
    def pids(self) -> dict[str, int]:
        """The process id of every part that runs."""
        servers = (("postgres", self._postgres), ("valkey", self._valkey))
        return {
            **{name: server.pid for name, server in servers if server is not None},
            **{name: child.pid for name, child in self._children.items()},
        }

    async def __aenter__(self) -> Self:
        started = False
        try:
            await self._start()
            started = True
        finally:
            if not started:
                await uninterrupted(self._stop())
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await uninterrupted(self._stop())

    async def _start(self) -> None:
        folder = open_folder(choose_path(self._options.data_dir, self._environment))
        folder.acquire()
        self._folder = folder
        remove_state(folder)
        if create_missing_keys(folder):
            self._tell("keys_created", "keys", str(encryption_file(folder)))
        self._keys = read_keys(folder)
        self._choose_ports()
        await together(self._start_database(), self._start_valkey(), self._start_trial())
        await self._start_services()
        self._up = True
        self._write_state()

    async def _start_database(self) -> None:
        if not is_set(self._environment, "DATABASE_URL"):
            assert self._folder is not None
            assert self._keys is not None
            self._tell("starting", "postgres", "")
            self._postgres = EmbeddedPostgres(
                self._folder, self._keys, on_line=self._options.on_line, on_event=self._tell
            )
            await self._postgres.start()
            self._tell("healthy", "postgres", "")
        self._tell("starting", MIGRATE, "")
        program = self._program(MIGRATE, self._commands.migrate)
        code, line = await run(program, self._log(MIGRATE), self._options.on_line)
        if code != 0:
            raise StartFailed(MIGRATE, code, line)
        self._tell("healthy", MIGRATE, "")

    async def _start_valkey(self) -> None:
        if is_set(self._environment, "REDIS_URL"):
            return
        assert self._folder is not None
        self._tell("starting", "valkey", "")
        self._valkey = EmbeddedValkey(self._folder, on_line=self._options.on_line, on_event=self._tell)
        await self._valkey.start()
        self._tell("healthy", "valkey", "")

    async def _start_trial(self) -> None:
        if not wants_trial_model(self._environment):
            return
        for attempt in range(PORT_TRIES):
            self._trial_port = port = free_port()
            try:
                await self._start_child(TRIAL, [*self._commands.trial, "--port", str(port)], port, listens)
            except PortTaken:
                if attempt == PORT_TRIES - 1:
                    raise
                continue
            self._children[TRIAL].keep_alive()
            return

    async def _start_services(self) -> None:
        """All at once; with other ports if another program took one of ours meanwhile."""
        for attempt in range(PORT_TRIES):
            ports = {GATEWAY: self._gateway_port}
            ports |= {name: self._grpc_port + offset for name, offset in GRPC_OFFSETS.items()}
            try:
                await together(
                    *(
                        self._start_child(name, command, ports[name], services.health_check(name))
                        for name, command in self._commands.services.items()
                    )
                )
            except PortTaken as error:
                asked = self._options.port if error.port == self._gateway_port else self._options.grpc_port
                if asked is not None or attempt == PORT_TRIES - 1:
                    raise
                await self._stop_children(self._commands.services, 1.0)
                self._choose_ports()
                continue
            for name in self._commands.services:
                self._children[name].keep_alive()
            return

    def _choose_ports(self) -> None:
        self._release_ports()
        options = self._options
        gateway = reserve(options.port or services.DEFAULT_GATEWAY_PORT, [0], explicit=options.port is not None)
        self._reservations.append(gateway)
        # A block asked for needs only the ports in use today; one we choose has room for the services to come.
        offsets = list(GRPC_BLOCK) if options.grpc_port is None else list(GRPC_OFFSETS.values())
        first = options.grpc_port or services.DEFAULT_GRPC_PORT
        grpc = reserve(first, offsets, explicit=options.grpc_port is not None)
        self._reservations.append(grpc)
        self._gateway_port, self._grpc_port = gateway.first, grpc.first
        if options.port is None and gateway.first != services.DEFAULT_GATEWAY_PORT:
            self._tell("port_moved", GATEWAY, f"{services.DEFAULT_GATEWAY_PORT} {gateway.first}")
        if options.grpc_port is None and grpc.first != services.DEFAULT_GRPC_PORT:
            self._tell("port_moved", "grpc", f"{services.DEFAULT_GRPC_PORT} {grpc.first}")

    async def _start_child(self, name: str, command: Sequence[str], port: int, check: Check) -> None:
        """Start one process and wait until it is healthy. Raises PortTaken, StartFailed, StartTimeout."""
        self._tell("starting", name, str(port))
        child = ChildProcess(
            self._program(name, command), self._log(name), on_line=self._options.on_line, on_event=self._tell
        )
        self._children[name] = child
        await child.start()
        deadline = asyncio.get_running_loop().time() + HEALTHY_SECONDS
        while not await check(port):
            if child.exit_code is not None:
                break
            if asyncio.get_running_loop().time() > deadline:
                raise StartTimeout(name, HEALTHY_SECONDS)
            await asyncio.sleep(0.05)
        # Asked again after the check: what answered may have been the program that took the port.
        if child.exit_code is not None:
            code = await child.wait()
            raise StartFailed(name, code, child.last_line()) if is_free(port) else PortTaken(port)
        self._tell("healthy", name, str(port))

    def _program(self, name: str, command: Sequence[str]) -> Program:
        assert self._folder is not None
        assert self._keys is not None
        places = Places(
            data_folder=str(self.folder),
            database_url=self.database_url,
            redis_url=self.redis_url,
            gateway_port=self._gateway_port,
            addresses=self.addresses,
            trial_url=None if self._trial_port is None else f"http://{LOOPBACK}:{self._trial_port}/v1",
        )
        return Program(name, command, child_environment(name, self._environment, self._keys, places))

    def _log(self, name: str) -> Path:
        assert self._folder is not None
        return self._folder.logs / f"{name}.log"

    def _tell(self, kind: EventKind, name: str, detail: str) -> None:
        try:
            self._options.on_event(kind, name, detail)
        except OSError:
            # The terminal it is told to is gone; what we are doing, stopping perhaps, must go on.
            pass
        if kind == "restarted" and self._up:
            self._write_state()

    def _write_state(self) -> None:
        assert self._folder is not None
        write_state(self._folder, State(os.getpid(), self.url, self.addresses, self.pids, self.trial_model))

    async def _stop(self) -> None:
        """Clients first, then what serves them; whoever hangs is killed, so that the sum stays within nine seconds."""
        if self._folder is None:
            return
        self._tell("stopping", "", "")
        self._up = False
        remove_state(self._folder)
        clock = asyncio.get_running_loop().time
        deadline = clock() + STOP_SECONDS
        # The gateway goes on telling its clients how their runs end while the engine drains.
        await together(self._stop_children([GATEWAY], 6.0), self._stop_children(["engine"], 6.0, delay=0.3))
        await self._stop_children(
            [name for name in GRPC_OFFSETS if name != "engine"], max(1.0, deadline - clock() - 1.5)
        )
        await self._stop_children([TRIAL], 0.5)
        left = max(1.0, deadline - clock())
        await together(*(server.stop(left) for server in (self._postgres, self._valkey) if server is not None))
        self._release_ports()
        self._folder.release()
        self._tell("stopped", "", "")

    async def _stop_children(self, names: Iterable[str], grace: float, *, delay: float = 0) -> None:
        await asyncio.sleep(delay)
        children = [self._children.pop(name) for name in names if name in self._children]
        await together(*(child.stop(grace) for child in children))

    def _release_ports(self) -> None:
        for reservation in self._reservations:
            reservation.release()
        self._reservations.clear()
