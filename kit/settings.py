"""Settings: read once from the environment, checked, and passed down."""

import difflib
import os
from collections.abc import Iterable
from importlib import resources
from typing import Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "LINTELLO_"
S = TypeVar("S", bound=BaseSettings)


class BadSetting(Exception):
    """A value or a name in the environment is wrong; the text is one line that names it and never quotes a secret."""


class Settings(BaseSettings):
    """What every service reads. A service adds its own fields in a subclass."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="ignore", hide_input_in_errors=True
    )

    internal_public_keys: str
    """`holder:base64,…`: the Ed25519 public keys of those who may mint internal tokens."""
    drain_seconds: float = Field(default=30, ge=0, le=3600)
    """How long a stopping service waits for what runs, in seconds."""
    locale: Literal["fr", "en"] = "fr"
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    """Where a gRPC service serves `/metrics`, on the host it listens at; None: nowhere."""


def load(kind: type[S]) -> S:
    """Read settings of one kind from the environment.

    Raises BadSetting for a value that doesn't fit, one that is missing, or a name under the prefix that nobody reads.
    """
    check_names(os.environ)
    try:
        return kind()
    except ValidationError as error:
        first = error.errors()[0]
        name = PREFIX + str(first["loc"][0] if first["loc"] else "").upper()
        message = first["msg"].removeprefix("Value error, ")
        problem = "is missing" if first["type"] == "missing" else message[:1].lower() + message[1:]
        raise BadSetting(f"{name}: {problem}") from None


def check_names(names: Iterable[str]) -> None:
    """Raise BadSetting for the first name under the prefix that no part reads, with the nearest that one does."""
    known = known_names()
    for name in sorted(names):
        if name.startswith(PREFIX) and name.removeprefix(PREFIX) not in known:
            near = difflib.get_close_matches(name.removeprefix(PREFIX), known, n=1)
            hint = f"; did you mean {PREFIX}{near[0]}?" if near else ""
            raise BadSetting(f"{name}: there is no such setting{hint}")


def known_names() -> list[str]:
    """Every variable that any part reads, without the prefix, sorted."""
    lines = resources.files("kit").joinpath("variables.txt").read_text(encoding="utf-8").splitlines()
    return sorted(line for line in lines if line and not line.startswith("#"))
