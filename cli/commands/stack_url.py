"""Finding the running stack a command is to talk to."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cli.commands.failure import WRONG_USAGE, Failure
from cli.texts import say


@dataclass(frozen=True)
class Target:
    """Where the gateway answers, and whether the trial model is known to answer behind it."""

    url: str
    trial_model: bool = False


def find_stack(url: str | None, data_dir: Path | None) -> Target:
    """The stack at `url`, else the one that runs in the data folder.

    Raises Failure: wrong usage for what isn't an HTTP URL, failed when nothing runs in the folder.
    """
    if url is not None:
        return Target(check_url(url))
    from cli.local.folder import DataFolder, choose_path
    from cli.local.state import read_state

    state = read_state(DataFolder(choose_path(data_dir, os.environ)))
    if state is None:
        raise Failure(say("stack.none"))
    return Target(state.url, state.trial_model)


def check_url(url: str) -> str:
    """The URL without a slash at its end. Raises Failure (wrong usage) when it isn't an HTTP one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise Failure(say("usage.url"), WRONG_USAGE)
    return url.rstrip("/")
