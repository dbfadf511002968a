"""What happens to a stack, in short lines for people; and its errors, worded."""

from cli.commands.failure import FAILED, WRONG_USAGE, Failure
from cli.local.errors import (
    BadMetricsPort,
    BadReplicas,
    BinariesMissing,
    FolderInUse,
    FolderUnusable,
    KeyMissing,
    LocalStackError,
    PortTaken,
    StartFailed,
    StartTimeout,
)
from cli.local.process import EventKind
from cli.screen.format import one_line
from cli.texts import say


def part(name: str) -> str:
    """What a part of the stack is called: `moteur`, `moteur 2`."""
    kind, _, number = name.partition("-")
    return f"{say(f'part.{kind}')} {number}".rstrip()


def report(kind: EventKind, name: str, detail: str) -> None:
    """Say what happened to a part."""
    if line := line_for(kind, name, detail):
        print(line, flush=True)


def line_for(kind: EventKind, name: str, detail: str) -> str | None:
    """The line for an event of `cli.local`; None for one nobody needs to read."""
    match kind:
        case "keys_created":
            return say("up.keys_created", path=detail)
        case "port_moved":
            taken, _, chosen = detail.partition(" ")
            return say("up.port_moved", part=part(name), taken=taken, chosen=chosen)
        case "starting":
            return None
        case "healthy":
            return say("up.healthy_port" if detail else "up.healthy", part=part(name), port=detail)
        case "metrics":
            return say("up.metrics", part=part(name), port=detail)
        case "died":
            return say("up.died", part=part(name), how=detail)
        case "restarted":
            return say("up.restarted", part=part(name))
        case "killed":
            return say("up.killed", part=part(name), seconds=detail)
        case "stopping" | "stopped":
            return say(f"up.{kind}")


def failure_for(error: LocalStackError) -> Failure:
    """The line and exit code for a stack that can't start."""
    match error:
        case FolderInUse(folder=path):
            return Failure(say("failed.folder_in_use", path=path))
        case FolderUnusable(folder=path, reason=reason):
            return Failure(say("failed.folder_unusable", path=path, reason=reason), WRONG_USAGE)
        case KeyMissing(path=path):
            return Failure(say("failed.key_missing", path=path))
        case BinariesMissing(package=package):
            return Failure(say("failed.binaries_missing", package=package))
        case PortTaken(port=port, asked=asked):
            return Failure(say("failed.port_taken", port=port), WRONG_USAGE if asked else FAILED)
        case BadReplicas(given=given):
            return Failure(say("usage.replicas", given=one_line(given)), WRONG_USAGE)
        case BadMetricsPort():
            return Failure(say("usage.metrics_port"), WRONG_USAGE)
        case StartFailed(exit_code=2, message=message):
            # A process that ends with 2 has written the one line that names the setting.
            return Failure(message, WRONG_USAGE)
        case StartFailed(name="migrate", exit_code=1, message=message) if message:
            # `lintello migrate` has worded it already.
            return Failure(message)
        case StartFailed(name=name, exit_code=code, message=message):
            return Failure(say("failed.start", part=part(name), code=code, message=message))
        case StartTimeout(name=name, seconds=seconds):
            return Failure(say("failed.start_timeout", part=part(name), seconds=f"{seconds:g}"))
    return Failure(str(error))
