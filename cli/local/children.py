"""The processes of a stack's services: started until they are healthy, kept alive, stopped."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from cli.local.errors import PortTaken, StartFailed, StartTimeout
from cli.local.health import Check
from cli.local.output import OnLine
from cli.local.ports import is_free
from cli.local.process import ChildProcess, OnEvent, Program
from cli.local.tasks import together

HEALTHY_SECONDS = 60.0


class Children(Mapping[str, ChildProcess]):
    """By name, in the order in which they were started."""

    def __init__(self, logs: Path, *, on_line: OnLine, on_event: OnEvent) -> None:
        """Each process has its log in the folder `logs`."""
        self._logs = logs
        self._on_line = on_line
        self._on_event = on_event
        self._children: dict[str, ChildProcess] = {}

    def __getitem__(self, name: str) -> ChildProcess:
        return self._children[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    async def start(self, program: Program, port: int, check: Check, *, asked: bool = False) -> None:
        """Start one process and wait until it is healthy. `asked`: the user chose its port.

        Raises PortTaken, StartFailed, StartTimeout.
        """
        name = program.name
        self._on_event("starting", name, str(port))
        child = ChildProcess(program, self._logs / f"{name}.log", on_line=self._on_line, on_event=self._on_event)
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
            raise StartFailed(name, code, child.last_line()) if is_free(port) else PortTaken(port, asked=asked)
        self._on_event("healthy", name, str(port))

    async def stop(self, names: Iterable[str], grace: float) -> None:
        """Ask these to end, all at once; whoever still runs after `grace` seconds is killed."""
        children = [self._children.pop(name) for name in names if name in self._children]
        await together(*(child.stop(grace) for child in children))
