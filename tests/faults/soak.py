"""`python -m tests.faults.soak --minutes 10 [--replicas engine=2,gateway=2]`

Questions, disconnects, returns, stops and kills, all at once; then an account of what should have been lost, and of
what should have been counted: a report, and exit code 0 only when there is nothing to say.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil

from cli.local.ports import reserve
from cli.local.services import MOST_REPLICAS, SERVICES
from tests.e2e.shell import let_servers_in
from tests.faults.site import Site, running
from tests.faults.soak_checks import (
    check_books,
    check_messages,
    check_nothing_left,
    check_readers,
    settled,
)
from tests.faults.soak_clients import Clients
from tests.faults.soak_faults import Accidents
from tests.faults.soak_metrics import check_quiet, gauges
from tests.faults.soak_report import Report

TOKENS_A_SECOND = 300.0
"""The model's pace: a think takes some seconds, so that accidents find it under way."""
CLIENTS = 8
METRICS_PORT = 9400
SHOWN = 10


async def soak(folder: Path, seconds: float, replicas: dict[str, int], seed: int) -> Report:
    """Run it all: the report of what was wrong."""
    report = Report()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    metrics = reserve(METRICS_PORT, range(len(SERVICES) * MOST_REPLICAS), explicit=False)
    async with running(folder, replicas, rate=TOKENS_A_SECOND, metrics_port=metrics.first) as site:
        await site.user.ask("Bonjour")
        new = await gauges(site)
        clients = Clients(site, random.Random(seed), CLIENTS)
        accidents = Accidents(site, random.Random(seed + 1))
        until = time.monotonic() + seconds
        await asyncio.gather(clients.run(until), accidents.run(until))
        await site.processes.all_back()
        await account(site, clients, report)
        await check_quiet(site, new, report)
        report.counts |= {"questions": len(clients.questions), "model calls": len(site.trial.calls)}
        report.counts |= dict(sorted(accidents.happened.items()))
    metrics.release()
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    report.expect("processes", not left, f"{len(left)} are left: {[child.name() for child in left]}")
    return report


async def account(site: Site, clients: Clients, report: Report) -> None:
    """Look at everything, once the last run is over."""
    await settled(site, report)
    await check_readers(clients.questions, report)
    await check_messages(site, clients.questions, report)
    await check_books(site, clients.questions, report)
    await check_nothing_left(site, report)


def show(report: Report) -> None:
    """The report, for people."""
    for name, count in report.counts.items():
        print(f"{count:>8}  {name}")
    for about, problems in report.problems.items():
        print(f"\n{about}: {len(problems)}")
        for problem in problems[:SHOWN]:
            print(f"  - {problem}")
    print("\nnothing was lost, and nothing is left" if not report.problems else "\nnot everything held")


def replicas_from(given: str) -> dict[str, int]:
    """`engine=2,gateway=2`. Raises ValueError."""
    pairs = [part.partition("=") for part in given.split(",") if part]
    return {name: int(count) for name, _, count in pairs}


def main() -> int:
    """Read the command line, run, report: 0 when everything held."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--replicas", type=replicas_from, default={}, help="engine=2,gateway=2")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--folder", type=Path, help="where the stack lives, kept with its logs; else a temporary one")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="lintello-soak-") as temporary:
        folder: Path = arguments.folder or Path(temporary)
        let_servers_in(folder)
        report = asyncio.run(soak(folder, arguments.minutes * 60, arguments.replicas, arguments.seed))
    show(report)
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
