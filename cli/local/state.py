"""`state.json`: how the command line finds the stack that runs in a data folder."""

import json
import os
from dataclasses import asdict, dataclass

from cli.local.folder import DataFolder

FORMAT = 2


@dataclass(frozen=True)
class State:
    """A running stack: the supervisor's process id, where things listen, and each part's process id.

    A service's first process has its name, the others are `engine-2` and so on.
    """

    pid: int
    gateways: dict[str, str]
    """URL of each gateway, the one to use first in front."""
    addresses: dict[str, str]
    """`host:port` of each gRPC process."""
    pids: dict[str, int]
    """Of each part; 0 for one that was down."""
    trial_model: bool

    @property
    def urls(self) -> list[str]:
        """Where the gateways answer, the one to use first in front."""
        return list(self.gateways.values())


def write_state(folder: DataFolder, state: State) -> None:
    """Replace the folder's state, whole or not at all."""
    draft = folder.state.with_name(".state.json.new")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump({"format": FORMAT, **asdict(state)}, file, indent=1)
    draft.replace(folder.state)


def read_state(folder: DataFolder) -> State | None:
    """The stack running in this folder; None when there is none for us, or what is left is of one that died."""
    try:
        fields = json.loads(folder.state.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError, json.JSONDecodeError):
        return None
    if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
        return None
    state = State(**fields)
    return state if is_alive(state.pid) else None


def remove_state(folder: DataFolder) -> None:
    """Say that nothing runs here any more."""
    folder.state.unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process with this id exists, ours or not; 0 is nobody's."""
    if pid == 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
