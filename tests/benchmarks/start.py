"""How fast a stack starts and shows its first step, and what memory it takes.

Run: `python -m tests.benchmarks.start` (Linux: PSS is read from /proc). Prints a table; judges nothing.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from cli.trial.server import serving
from tests.e2e.client import HARD
from tests.e2e.shell import Up, let_servers_in, running

WARM_UP = 5
REQUESTS = 50
MEBIBYTE = 1024 * 1024


async def first_step(http: httpx.AsyncClient) -> float:
    """Seconds from a request to its first `thinking_step`; the rest of the run is read to its end."""
    began = time.perf_counter()
    shown = 0.0
    body = {"message": HARD, "mode": "recherche"}
    async with http.stream("POST", "/api/chat/stream", json=body, timeout=120) as response:
        async for line in response.aiter_lines():
            if not shown and line.startswith("data: ") and json.loads(line[6:])["type"] == "thinking_step":
                shown = time.perf_counter() - began
    return shown


def memory(up: Up) -> dict[str, float]:
    """PSS in MiB of every process of the stack, by what it runs."""
    found: dict[str, float] = {}
    for process in up.family():
        words = process.cmdline()
        name = next((word for word in words if word.startswith(("services.", "gateway", "cli."))), Path(words[0]).name)
        found[name.split(":")[0]] = found.get(name.split(":")[0], 0) + process.memory_full_info().pss / MEBIBYTE
    return found


async def main() -> None:
    """Start with the trial model at its own pace, then with one that answers at once."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        let_servers_in(folder)
        for label in ("first start", "second start"):
            began = time.perf_counter()
            async with running(folder / "data") as up, httpx.AsyncClient(base_url=up.url) as http:
                ready = time.perf_counter() - began
                step = await first_step(http)
                print(f"{label}: ready after {ready:.1f} s, first step {step * 1000:.0f} ms after the request")
                if label == "second start" and sys.platform == "linux":
                    by_process = memory(up)
                    for process, mebibytes in sorted(by_process.items(), key=lambda item: -item[1]):
                        print(f"  {process:<24} {mebibytes:6.1f} MiB PSS")
                    print(f"  {'sum':<24} {sum(by_process.values()):6.1f} MiB PSS")
        async with (
            serving() as trial,
            running(folder / "data", LINTELLO_LLM_BASE_URL=trial.base_url) as up,
            httpx.AsyncClient(base_url=up.url) as http,
        ):
            for _ in range(WARM_UP):
                await first_step(http)
            times = sorted([await first_step(http) for _ in range(REQUESTS)])
            print(
                f"first step, {REQUESTS} warm requests, model without delay: "
                f"p50 {statistics.median(times) * 1000:.1f} ms, p95 {times[int(REQUESTS * 0.95)] * 1000:.1f} ms"
            )


if __name__ == "__main__":
    asyncio.run(main())
