"""The settings a command reads itself, and how a bad one is reported."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cli.commands.failure import WRONG_USAGE, Failure
from kit.settings import PREFIX, BadSetting, check_names


@contextmanager
def bad_settings_reported() -> Iterator[None]:
    """Turns BadSetting into Failure (wrong usage) with its one line."""
    try:
        yield
    except BadSetting as error:
        raise Failure(str(error), WRONG_USAGE) from None


def check_settings() -> None:
    """Raise Failure (wrong usage) for a name under the prefix that nobody reads."""
    with bad_settings_reported():
        check_names(os.environ)


def setting(name: str) -> str:
    """The value of `LINTELLO_<name>`; "" when it isn't set."""
    return os.environ.get(PREFIX + name, "")
