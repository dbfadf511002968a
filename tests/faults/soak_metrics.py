"""What the processes of a soak say of themselves: nothing in flight when all is over, no more tasks than before."""

import asyncio
from collections.abc import Mapping

import httpx
from prometheus_client.parser import text_string_to_metric_families

from tests.faults.site import Site
from tests.faults.soak_report import Report

IN_FLIGHT = (
    "lintello_runs_in_flight",
    "lintello_runs_in_memory",
    "lintello_run_readers",
    "lintello_runs_unsettled",
    "lintello_sse_streams_open",
)
TASKS = "lintello_asyncio_tasks"
MORE_TASKS = 5
"""A janitor's round, a call of health: what a process may be doing at any moment."""
QUIET_SECONDS = 30.0

Gauges = Mapping[str, Mapping[str, float]]


async def gauges(site: Site) -> Gauges:
    """The samples without labels of each process."""
    found: dict[str, dict[str, float]] = {}
    async with httpx.AsyncClient(trust_env=False) as http:
        for name, url in site.metrics_urls.items():
            families = text_string_to_metric_families((await http.get(url)).text)
            samples = [sample for family in families for sample in family.samples if not sample.labels]
            found[name] = {sample.name: sample.value for sample in samples}
    return found


async def check_quiet(site: Site, before: Gauges, report: Report) -> None:
    """Nothing is in flight, and no process has more tasks than when it was new."""
    try:
        async with asyncio.timeout(QUIET_SECONDS):
            while _busy(await gauges(site), before):
                await asyncio.sleep(1)
    except TimeoutError:
        for line in _busy(await gauges(site), before):
            report.expect("tasks", False, line)
    report.counts["tasks"] = int(sum(values.get(TASKS, 0) for values in (await gauges(site)).values()))


def _busy(now: Gauges, before: Gauges) -> list[str]:
    lines = [f"{name}: {gauge} is {now[name][gauge]:g}" for name in now for gauge in IN_FLIGHT if now[name].get(gauge)]
    for name, values in now.items():
        if values.get(TASKS, 0) > before[name].get(TASKS, 0) + MORE_TASKS:
            lines.append(f"{name}: {values[TASKS]:g} tasks, {before[name][TASKS]:g} when it was new")
    return lines
