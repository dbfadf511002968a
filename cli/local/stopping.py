"""The end of a stack: who is told when, and how long each may take."""

import asyncio

from cli.local.children import Children
from cli.local.servers import Servers
from cli.local.services import GATEWAY, service_of

STOP_SECONDS = 8.5
"""All of it is stopped, or killed, within this time of being asked; the rest of ten is for the caller's own end."""
RUNS_SECONDS = 5.6
"""An engine gives its runs five seconds, then stores what they have and says so: by now it has."""
ENGINE_SECONDS = 6.3
GATEWAY_SECONDS = 1.4
SERVICE_SECONDS = 0.7
SERVER_SECONDS = 0.8


async def stop_in_order(children: Children, servers: Servers) -> None:
    """Stop everything: first who works on runs, then who tells of them, then what both stand on.

    The gateways go on telling their clients how their runs end while the engines drain. Whoever hangs is killed.
    """
    clock = asyncio.get_running_loop().time
    deadline = clock() + STOP_SECONDS
    engines = asyncio.ensure_future(children.stop(_processes_of("engine", children), ENGINE_SECONDS))
    try:
        await asyncio.wait({engines}, timeout=RUNS_SECONDS)
        await children.stop(_processes_of(GATEWAY, children), GATEWAY_SECONDS)
    finally:
        await engines
    # Time that nobody took is theirs: they may be in the middle of storing something.
    await children.stop(list(children), max(SERVICE_SECONDS, deadline - clock() - SERVER_SECONDS))
    await servers.stop(max(SERVER_SECONDS, deadline - clock()))


def _processes_of(service: str, children: Children) -> list[str]:
    return [name for name in children if service_of(name) == service]
