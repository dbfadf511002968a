"""What the quota service counts, for Prometheus."""

import asyncio
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from services.quota.errors import LeasesUnavailable
from services.quota.leases import Leases

SCRAPE_SECONDS = 1
"""How long a scrape waits for the service."""


class Slots(Collector):
    """The slots for thinks, asked for at each scrape; those taken are left out while Redis doesn't answer."""

    def __init__(self, leases: Leases, registry: CollectorRegistry) -> None:
        """Must be made within the event loop that `leases` lives in."""
        self._leases = leases
        self._loop = asyncio.get_running_loop()
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called in a scrape's own thread."""
        yield GaugeMetricFamily("lintello_slots", "Slots for thinks, over all engines.", self._leases.limit)
        try:
            held = asyncio.run_coroutine_threadsafe(self._leases.held(), self._loop).result(SCRAPE_SECONDS)
        except (LeasesUnavailable, TimeoutError):
            return
        yield GaugeMetricFamily("lintello_slots_taken", "Slots that are taken.", len(held))

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Nothing is asked when it is registered."""
        yield from ()
