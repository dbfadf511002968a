"""Which ports the processes of a stack get."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

from cli.local.ports import reserve
from cli.local.services import (
    DEFAULT_GATEWAY_PORT,
    DEFAULT_GRPC_PORT,
    GATEWAY,
    GRPC_BLOCK,
    GRPC_OFFSETS,
    Replica,
)


@dataclass(frozen=True)
class Layout:
    """Where each process listens. Other stacks pass over these ports until `release`."""

    gateways: list[Replica]
    grpc: list[Replica]
    release: Callable[[], None]

    @property
    def processes(self) -> list[Replica]:
        """All of them, the gateways last."""
        return [*self.grpc, *self.gateways]

    def of(self, service: str) -> list[Replica]:
        """The processes of one service, the first one in front."""
        return [process for process in self.processes if process.service == service]


def choose(
    gateway_port: int | None, grpc_port: int | None, metrics_port: int | None, replicas: Mapping[str, int]
) -> Layout:
    """Choose the ports. One that is None is the default one, or the next that is free; without one of metrics, none.

    The first process of each service has the port its users know; the others follow: gateways after the first one's,
    gRPC processes after the block of five. Those with metrics take one port each from `metrics_port` on. Raises
    PortTaken.
    """
    with ExitStack() as held:

        def take(first: int, offsets: list[int], *, asked: bool) -> int:
            reservation = reserve(first, offsets, explicit=asked)
            held.callback(reservation.release)
            return reservation.first

        gateway = take(gateway_port or DEFAULT_GATEWAY_PORT, [0], asked=gateway_port is not None)
        # A block asked for needs only the ports in use today; one we choose has room for the services to come.
        block = list(GRPC_BLOCK) if grpc_port is None else list(GRPC_OFFSETS.values())
        first = take(grpc_port or DEFAULT_GRPC_PORT, block, asked=grpc_port is not None)
        gateways = [Replica(GATEWAY, 1, gateway, asked=gateway_port is not None)]
        for number in range(2, replicas.get(GATEWAY, 1) + 1):
            port = take(gateways[-1].port + 1, [0], asked=False)
            gateways.append(Replica(GATEWAY, number, port, asked=False))
        grpc: list[Replica] = []
        after = first + len(GRPC_BLOCK)
        for service, offset in GRPC_OFFSETS.items():
            grpc.append(Replica(service, 1, first + offset, asked=grpc_port is not None))
            for number in range(2, replicas.get(service, 1) + 1):
                after = take(after, [0], asked=False) + 1
                grpc.append(Replica(service, number, after - 1, asked=False))
        if metrics_port is not None:
            take(metrics_port, list(range(len(grpc))), asked=True)
            grpc = [replace(one, metrics_port=metrics_port + place) for place, one in enumerate(grpc)]
        return Layout(gateways, grpc, held.pop_all().close)
