"""A minute of everything at once. Longer by hand: `python -m tests.faults.soak --minutes 10`."""

from pathlib import Path

import pytest

from tests.e2e.shell import let_servers_in
from tests.faults.replicas import ONE, REPLICAS, TWO
from tests.faults.soak import soak

SECONDS = 60.0
SEED = 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("replicas", [ONE, TWO])
async def test_a_minute_of_accidents_loses_nothing_counts_nothing_twice_and_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, replicas: int
) -> None:
    folder: Path = tmp_path_factory.mktemp("soak")
    let_servers_in(folder)
    report = await soak(folder, SECONDS, REPLICAS[replicas], SEED)
    assert dict(report.problems) == {}
    assert report.counts["runs"] > 20
