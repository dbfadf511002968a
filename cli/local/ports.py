"""Finding ports, without two stacks ever choosing the same one."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from cli.local.errors import PortTaken

LOOPBACK = "127.0.0.1"
TRIES = 200


@dataclass
class Reservation:
    """Ports `first + offset` chosen for us; other stacks pass over them until `release`."""

    first: int
    _holders: list[socket.socket]

    def release(self) -> None:
        """Let others have the ports."""
        for holder in self._holders:
            holder.close()


def is_free(port: int) -> bool:
    """Whether nothing listens on the port on loopback, and we may."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.5)
        if probe.connect_ex((LOOPBACK, port)) == 0:
            return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        # So that connections of an earlier run, still in TIME_WAIT, don't count.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
            listener.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port the system says is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind((LOOPBACK, 0))
        port: int = listener.getsockname()[1]
        return port


def reserve(first: int, offsets: Sequence[int], *, explicit: bool) -> Reservation:
    """Choose ports: `first + offset` for each offset, or (not `explicit`) the next `first` where all are free.

    A stack holds the UDP port of the same number as long as it runs: one of two stacks that start at the same moment
    fails to bind it and moves on, before either has a TCP listener. The kernel lets go of it whatever ends us.
    Raises PortTaken when the ports were asked for, or when none of the next 200 will do.
    """
    for candidate in range(first, min(first + (1 if explicit else TRIES), 65536 - max(offsets))):
        taken = next((candidate + offset for offset in offsets if not is_free(candidate + offset)), None)
        if taken is not None and explicit:
            raise PortTaken(taken, asked=True)
        if taken is None and (holders := _hold([candidate + offset for offset in offsets])) is not None:
            return Reservation(candidate, holders)
        if taken is None and explicit:
            # Some other program's UDP port; TCP is ours to use.
            return Reservation(candidate, [])
    raise PortTaken(first, asked=explicit)


def _hold(ports: list[int]) -> list[socket.socket] | None:
    holders: list[socket.socket] = []
    for port in ports:
        holder = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        holders.append(holder)
        try:
            holder.bind((LOOPBACK, port))
        except OSError:
            for other in holders:
                other.close()
            return None
    return holders
