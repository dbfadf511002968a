"""What the tests of the local stack share: throw-away parts, a recorder, and a search for what is left running."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cli.local.process import EventKind
from cli.local.services import Commands
from cli.local.stack import StackOptions

PART = str(Path(__file__).with_name("part.py"))


def part(*arguments: str) -> Sequence[str]:
    """The command line of a throw-away part."""
    return (sys.executable, PART, *arguments)


COMMANDS = Commands(
    migrate=part("migrate"),
    trial=part("trial"),
    services={name: part(name) for name in ("treestore", "quota", "engine", "gateway")},
)


def commands(**services: Sequence[str]) -> Commands:
    """The same stack with some services played otherwise."""
    return Commands(COMMANDS.migrate, COMMANDS.trial, {**COMMANDS.services, **services})


@dataclass
class Recorder:
    """Keeps what a stack or server tells."""

    events: list[tuple[EventKind, str, str]] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)

    def on_event(self, kind: EventKind, name: str, detail: str) -> None:
        self.events.append((kind, name, detail))

    def on_line(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def heard(self, kind: EventKind, name: str) -> list[str]:
        """The details of the events of this kind and part."""
        return [detail for one, other, detail in self.events if (one, other) == (kind, name)]

    def options(
        self, folder: Path, port: int | None = None, grpc_port: int | None = None, **replicas: int
    ) -> StackOptions:
        """Options for a stack in this folder that tells us."""
        return StackOptions(
            self.on_event, self.on_line, port=port, grpc_port=grpc_port, data_dir=folder, replicas=replicas
        )


def running_in(folder: Path) -> list[str]:
    """Every process that works for a stack in this folder: by its arguments, environment or working folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid == psutil.Process().pid or process.status() == psutil.STATUS_ZOMBIE:
                continue
            traces = (*process.cmdline(), *process.environ().values(), process.cwd())
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
        if any(str(folder) in trace for trace in traces):
            found.append(f"{process.pid} {' '.join(traces[:4])}")
    return found


async def until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for a condition; TimeoutError when it doesn't come true."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.02)
