"""The processes of a stack besides its servers: how each is run, where it listens, how its health is asked."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.local.health import Check, grpc_serving, http_ready

GATEWAY = "gateway"
TRIAL = "trial"
MIGRATE = "migrate"

DEFAULT_GATEWAY_PORT = 8080
DEFAULT_GRPC_PORT = 50051

GRPC_OFFSETS: Mapping[str, int] = {"engine": 0, "treestore": 1, "quota": 2}
"""Each gRPC service's port, counted from `--grpc-port`; 3 is retrieval's and 4 the planner's."""
GRPC_BLOCK = range(5)


def _module(name: str, *arguments: str) -> tuple[str, ...]:
    # -P: a folder called `services` or `kit` where the user happens to be is none of ours.
    return (sys.executable, "-P", "-m", name, *arguments)


@dataclass(frozen=True)
class Commands:
    """What to run for each part."""

    migrate: Sequence[str]
    trial: Sequence[str]
    """`--port N` is appended."""
    services: Mapping[str, Sequence[str]]
    """By name: the gateway, and those of GRPC_OFFSETS."""


COMMANDS = Commands(
    migrate=_module("cli.main", "migrate"),
    trial=_module("cli.trial"),
    services={
        "treestore": _module("services.treestore"),
        "quota": _module("services.quota"),
        "engine": _module("services.engine"),
        GATEWAY: _module("gateway"),
    },
)


def health_check(name: str) -> Check:
    """How to ask this service whether it is healthy."""
    return http_ready if name == GATEWAY else grpc_serving
