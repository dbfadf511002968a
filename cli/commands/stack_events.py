"""What happens to a stack, in short lines for people; and its errors, worded."""

from cli.commands.failure import FAILED, WRONG_USAGE, Failure
from cli.local.errors import (
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
from cli.texts import say


def part(name: str) -> str:
    """What a part of the stack is called."""
    return say(f"part.{name}")


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
        case "died":
            return say("up.died", part=part(name), how=detail)
        case "restarted":
            return say("up.restarted", part=part(name))
        case "killed":
            return say("up.killed", part=part(name), seconds=detail)
        case "stopping" | "stopped":
            return say(f"up.{kind}")


def failure_for(error: LocalStackError, port_was_asked_for: bool) -> Failure:
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
        case PortTaken(port=port):
            return Failure(say("failed.port_taken", port=port), WRONG_USAGE if port_was_asked_for else FAILED)
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
