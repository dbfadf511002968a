"""A whole stack on this machine: servers, migrations, trial model and services, started and stopped together."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from cli.local.children import Children
from cli.local.environment import Places, child_environment, is_set, metrics_port, wants_trial_model
from cli.local.errors import PortTaken, StartFailed
from cli.local.folder import DataFolder, choose_path, open_folder
from cli.local.health import listens
from cli.local.keys import Keys, create_missing_keys, encryption_file, read_keys
from cli.local.layout import Layout, choose
from cli.local.output import OnLine
from cli.local.ports import LOOPBACK, free_port
from cli.local.process import ChildProcess, EventKind, OnEvent, Program, run
from cli.local.servers import Servers
from cli.local.services import (
    COMMANDS,
    DEFAULT_GATEWAY_PORT,
    DEFAULT_GRPC_PORT,
    GATEWAY,
    GRPC_OFFSETS,
    MIGRATE,
    TRIAL,
    Commands,
    check_replicas,
    health_check,
)
from cli.local.state import State, remove_state, write_state
from cli.local.stopping import stop_in_order
from cli.local.tasks import together, uninterrupted

PORT_TRIES = 5


@dataclass(frozen=True)
class StackOptions:
    """What a stack is asked to be. A port that is None is the default one, or the next that is free.

    Raises BadReplicas.
    """

    on_event: OnEvent
    on_line: OnLine
    port: int | None = None
    grpc_port: int | None = None
    data_dir: Path | None = None
    replicas: Mapping[str, int] = field(default_factory=dict)
    """How many processes, 1 to 8, of engine, treestore, quota and gateway; one of what isn't named."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def __post_init__(self) -> None:
        check_replicas(self.replicas)


class Stack:
    """`async with Stack(options) as stack:` everything is healthy inside, nothing of it is left after.

    Raises one of `cli.local.errors` when it can't start; what had been started is stopped then.
    """

    def __init__(self, options: StackOptions, commands: Commands = COMMANDS) -> None:
        self._options = options
        self._commands = commands
        self._environment = options.environment
        self._folder = DataFolder(choose_path(options.data_dir, options.environment))
        self._services = Children(self._folder.logs, on_line=options.on_line, on_event=self._tell)
        self._servers = Servers(on_line=options.on_line, on_event=self._tell)
        self._keys: Keys | None = None
        self._layout: Layout | None = None
        self._trial_port: int | None = None
        self._held = False
        self._up = False

    @property
    def url(self) -> str:
        """Where the first gateway answers."""
        return self.gateway_urls[0]

    @property
    def gateway_urls(self) -> list[str]:
        """Where each gateway answers."""
        return list(self._gateways.values())

    @property
    def addresses(self) -> dict[str, str]:
        """`host:port` of each gRPC process: `engine`, `engine-2`, …"""
        assert self._layout is not None
        return {process.name: process.address for process in self._layout.grpc}

    def grpc_addresses(self, service: str) -> list[str]:
        """`host:port` of each process of one gRPC service."""
        assert self._layout is not None
        return [process.address for process in self._layout.of(service)]

    @property
    def folder(self) -> Path:
        """The data folder."""
        return self._folder.path

    @property
    def database_url(self) -> str:
        """The embedded PostgreSQL's URL; empty when another one was given."""
        return self._servers.database_url

    @property
    def redis_url(self) -> str:
        """The embedded Valkey's URL; empty when another one was given."""
        return self._servers.redis_url

    @property
    def trial_model(self) -> bool:
        """Whether the trial model answers, for want of a real one."""
        return self._trial_port is not None

    @property
    def children(self) -> dict[str, int]:
        """The process id of each part: postgres, valkey, trial, engine, engine-2, …; 0 while it doesn't run."""
        return {name: child.pid for name, child in self._supervised().items()}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Kill one of `children` now; it is started again, and kept alive, only when the block ends."""
        async with self._supervised()[name].held_down():
            yield

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
        folder = open_folder(self.folder)
        folder.acquire()
        self._folder, self._held = folder, True
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
            assert self._keys is not None
            await self._servers.start_postgres(self._folder, self._keys)
        self._tell("starting", MIGRATE, "")
        program = Program(MIGRATE, self._commands.migrate, self._environment_of(MIGRATE))
        code, line = await run(program, self._folder.logs / f"{MIGRATE}.log", self._options.on_line)
        if code != 0:
            raise StartFailed(MIGRATE, code, line)
        self._tell("healthy", MIGRATE, "")

    async def _start_valkey(self) -> None:
        if not is_set(self._environment, "REDIS_URL"):
            await self._servers.start_valkey(self._folder)

    async def _start_trial(self) -> None:
        if not wants_trial_model(self._environment):
            return
        for attempt in range(PORT_TRIES):
            self._trial_port = port = free_port()
            command = [*self._commands.trial, "--port", str(port)]
            try:
                await self._services.start(Program(TRIAL, command, self._environment_of(TRIAL)), port, listens)
            except PortTaken:
                if attempt == PORT_TRIES - 1:
                    raise
                continue
            self._services[TRIAL].keep_alive()
            return

    async def _start_services(self) -> None:
        """All at once; with other ports if another program took one of ours meanwhile."""
        for attempt in range(PORT_TRIES):
            assert self._layout is not None
            processes = {
                process: Program(
                    process.name,
                    self._commands.services[process.service],
                    self._environment_of(process.service, process.settings),
                )
                for process in self._layout.processes
            }
            names = [process.name for process in processes]
            try:
                await together(
                    *(
                        self._services.start(program, process.port, health_check(process.service), asked=process.asked)
                        for process, program in processes.items()
                    )
                )
            except PortTaken as error:
                if error.asked or attempt == PORT_TRIES - 1:
                    raise
                await self._services.stop(names, 1.0)
                self._choose_ports()
                continue
            for process in processes:
                self._services[process.name].keep_alive()
                if process.metrics_port is not None:
                    self._tell("metrics", process.name, str(process.metrics_port))
            return

    def _choose_ports(self) -> None:
        if self._layout is not None:
            self._layout.release()
        options = self._options
        self._layout = choose(options.port, options.grpc_port, metrics_port(self._environment), options.replicas)
        gateway, grpc = self._layout.gateways[0].port, self._layout.grpc[0].port
        if options.port is None and gateway != DEFAULT_GATEWAY_PORT:
            self._tell("port_moved", GATEWAY, f"{DEFAULT_GATEWAY_PORT} {gateway}")
        if options.grpc_port is None and grpc != DEFAULT_GRPC_PORT:
            self._tell("port_moved", "grpc", f"{DEFAULT_GRPC_PORT} {grpc}")

    @property
    def _gateways(self) -> dict[str, str]:
        assert self._layout is not None
        return {process.name: f"http://{process.address}" for process in self._layout.gateways}

    def _supervised(self) -> dict[str, ChildProcess]:
        return {**self._servers.children, **self._services}

    def _environment_of(self, service: str, own: Mapping[str, str] | None = None) -> dict[str, str]:
        assert self._keys is not None
        places = Places(
            data_folder=str(self.folder),
            database_url=self.database_url,
            redis_url=self.redis_url,
            addresses={name: ",".join(self.grpc_addresses(name)) for name in GRPC_OFFSETS},
            trial_url=None if self._trial_port is None else f"http://{LOOPBACK}:{self._trial_port}/v1",
        )
        return child_environment(service, self._environment, self._keys, places, own or {})

    def _tell(self, kind: EventKind, name: str, detail: str) -> None:
        try:
            self._options.on_event(kind, name, detail)
        except OSError:
            # The terminal it is told to is gone; what we are doing, stopping perhaps, must go on.
            pass
        if kind == "restarted" and self._up:
            self._write_state()

    def _write_state(self) -> None:
        write_state(self._folder, State(os.getpid(), self._gateways, self.addresses, self.children, self.trial_model))

    async def _stop(self) -> None:
        if not self._held:
            return
        self._tell("stopping", "", "")
        self._up = False
        remove_state(self._folder)
        await stop_in_order(self._services, self._servers)
        if self._layout is not None:
            self._layout.release()
        self._folder.release()
        self._held = False
        self._tell("stopped", "", "")
