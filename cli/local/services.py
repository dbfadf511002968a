"""The processes of a stack besides its servers: how each is run, where it listens, how its health is asked."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.local.errors import BadReplicas
from cli.local.health import Check, grpc_serving, http_ready
from cli.local.ports import LOOPBACK

GATEWAY = "gateway"
TRIAL = "trial"
MIGRATE = "migrate"

DEFAULT_GATEWAY_PORT = 8080
DEFAULT_GRPC_PORT = 50051

GRPC_OFFSETS: Mapping[str, int] = {"engine": 0, "treestore": 1, "quota": 2}
"""Each gRPC service's port, counted from `--grpc-port`; 3 is retrieval's and 4 the planner's."""
GRPC_BLOCK = range(5)

SERVICES = (*GRPC_OFFSETS, GATEWAY)
MOST_REPLICAS = 8


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


@dataclass(frozen=True)
class Replica:
    """One process of a service, and where on the loopback address it listens."""

    service: str
    number: int
    """From 1."""
    port: int
    asked: bool
    """Whether the user chose this very port."""
    metrics_port: int | None = None

    @property
    def name(self) -> str:
        """`engine`, `engine-2`, …"""
        return self.service if self.number == 1 else f"{self.service}-{self.number}"

    @property
    def address(self) -> str:
        """`host:port`."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def settings(self) -> dict[str, str]:
        """What tells this process, and no other, where to listen; named without the prefix."""
        own = {"GATEWAY_PORT": str(self.port)}
        if self.service != GATEWAY:
            own = {f"{self.service.upper()}_ADDRESS": self.address}
        if self.metrics_port is not None:
            own["METRICS_PORT"] = str(self.metrics_port)
        return own


def service_of(name: str) -> str:
    """`engine` of `engine-2`."""
    return name.partition("-")[0]


def check_replicas(replicas: Mapping[str, int]) -> None:
    """Raise BadReplicas for what isn't a service of ours, or for a number of processes that isn't 1 to 8."""
    for service, count in replicas.items():
        if service not in SERVICES or not 1 <= count <= MOST_REPLICAS:
            raise BadReplicas(f"{service}={count}")


def health_check(service: str) -> Check:
    """How to ask a process of this service whether it is healthy."""
    return http_ready if service == GATEWAY else grpc_serving
