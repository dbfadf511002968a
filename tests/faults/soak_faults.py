"""The soak's accidents: processes killed, restarted and frozen, connections cut, servers out of reach."""

import asyncio
import time
from collections import Counter
from random import Random

from tests.faults.processes import service_of
from tests.faults.site import Site

KILLED_MORE = ("engine", "gateway")
PAUSE_SECONDS = (2.0, 8.0)


class Accidents:
    """One accident after the other, some of them at the same time."""

    def __init__(self, site: Site, random: Random) -> None:
        self._site = site
        self._random = random
        self.happened: Counter[str] = Counter()

    async def run(self, until: float) -> None:
        """Until this time (of `time.monotonic()`); what was taken away is back when this returns."""
        under_way: set[asyncio.Task[None]] = set()
        while time.monotonic() < until:
            accident = self._random.choice((self._kill, self._kill, self._kill, self._end, self._freeze, self._cut))
            task = asyncio.ensure_future(accident())
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            await asyncio.sleep(self._random.uniform(*PAUSE_SECONDS))
        await asyncio.gather(*under_way)

    def _victim(self) -> str:
        """Any process that runs; engines and gateways more often than others."""
        running = [name for name in self._site.processes.names if self._site.processes.pid(name)]
        weights = [3 if service_of(name) in KILLED_MORE else 1 for name in running]
        return self._random.choices(running, weights)[0]

    async def _kill(self) -> None:
        name = self._victim()
        self.happened[f"killed {name}"] += 1
        self._site.processes.kill(name)

    async def _end(self) -> None:
        name = self._victim()
        self.happened[f"ended {name}"] += 1
        self._site.processes.terminate(name)

    async def _freeze(self) -> None:
        name = self._victim()
        self.happened[f"froze {name}"] += 1
        with self._site.processes.frozen(name):
            await asyncio.sleep(self._random.uniform(0.5, 4))

    async def _cut(self) -> None:
        what, proxy = self._random.choice((("redis", self._site.redis), ("postgres", self._site.database)))
        how = self._random.choice(("reset", "cut", "out of reach"))
        self.happened[f"{how}: {what}"] += 1
        if how == "reset":
            proxy.reset()
        elif how == "cut":
            proxy.cut()
        elif proxy.listens:
            async with proxy.refusing():
                await asyncio.sleep(self._random.uniform(0.5, 4))
