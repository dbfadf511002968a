"""Metrics: what a process counts about itself, served to Prometheus."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from kit.settings import BadSetting

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 360)
"""Seconds: a lease takes about one millisecond, a think minutes."""


class Calls:
    """The calls a gRPC service has served. Methods and codes are few; nobody who calls is in a label."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Registers itself; two at one registry can't be."""
        self._calls = Counter("lintello_grpc_calls", "Calls served.", ["method", "code"], registry=registry)
        self._seconds = Histogram(
            "lintello_grpc_call_seconds",
            "Time from a call to the end of its answer.",
            ["method"],
            buckets=BUCKETS,
            registry=registry,
        )

    def served(self, method: str, code: str, seconds: float) -> None:
        """Count a call that has ended. `method` is `/package.Service/Method`, `code` the name of its status."""
        self._calls.labels(method, code).inc()
        self._seconds.labels(method).observe(seconds)


@asynccontextmanager
async def exposed(registry: CollectorRegistry, address: str, port: int | None) -> AsyncIterator[None]:
    """Serve the registry over HTTP within the block, on the host of `address` (`host:port`); without a port, nowhere.

    Scrapes are answered in threads of their own: collectors must bear that. Raises BadSetting when the port is taken.
    """
    if port is None:
        yield
        return
    loop = asyncio.get_running_loop()
    tasks = Gauge("lintello_asyncio_tasks", "Tasks of this process.", registry=registry)
    tasks.set_function(lambda: len(asyncio.all_tasks(loop)))
    host = address.rpartition(":")[0].strip("[]")
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError:
        raise BadSetting(f"LINTELLO_METRICS_PORT: can't listen at {host}:{port}") from None
    try:
        yield
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
