"""Metrics of the gateway, in Prometheus' text format."""

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 360)
"""Seconds."""


class Metrics:
    """One process' counters, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "lintello_http_requests", "Requests answered.", ["method", "route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "lintello_http_response_start_seconds",
            "Time from a request to the first byte of its answer.",
            ["method", "route"],
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._streams = Gauge("lintello_sse_streams_open", "Readers connected now.", registry=self._registry)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is a template, so that there are few of them."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    @contextmanager
    def stream_open(self) -> Iterator[None]:
        """Count an event stream while it is open."""
        with self._streams.track_inprogress():
            yield

    def text(self) -> bytes:
        """Everything, as a scrape reads it."""
        return generate_latest(self._registry)
