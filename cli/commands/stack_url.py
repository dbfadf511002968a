"""Finding the running stack a command is to talk to."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from cli.commands.failure import WRONG_USAGE, Failure
from cli.texts import say


@dataclass(frozen=True)
class Target:
    """Where the gateways answer, and whether the trial model is known to answer behind them."""

    urls: tuple[str, ...]
    """The one to use first in front."""
    trial_model: bool = False


def find_stack(url: str | None, data_dir: Path | None) -> Target:
    """The stack at `url`, else the one that runs in the data folder.

    A URL that is one of that stack's gateways brings the others with it. Raises Failure: wrong usage for what isn't an
    HTTP URL, failed when nothing runs in the folder.
    """
    from cli.local.folder import DataFolder, choose_path
    from cli.local.state import read_state

    first = None if url is None else check_url(url)
    state = read_state(DataFolder(choose_path(data_dir, os.environ)))
    if first is not None and (state is None or first not in state.urls):
        return Target((first,))
    if state is None:
        raise Failure(say("stack.none"))
    # Those after the first keep their order.
    return Target(tuple(sorted(state.urls, key=lambda one: one != (first or state.urls[0]))), state.trial_model)


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
