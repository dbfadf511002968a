"""What the tests of the engine's parts share: short waits, an engine, a run that has ended.

What the engine waits for by the second, a test waits for by the millisecond.
"""

import pytest

from services.engine import recorder, run, runs, watch
from services.engine.events import Numbered
from services.engine.run import Run
from tests.unit.engine.fakes import House, ScriptedModel, events

WAITS = {
    (runs, "HEARTBEAT_SECONDS"): 0.02,
    (runs, "ENTER_SECONDS"): 0.005,
    (recorder, "AGAIN_SECONDS"): (0.002,),
    (run, "AGAIN_SECONDS"): 0.005,
    (watch, "POLL_SECONDS"): 0.002,
    (watch, "SLOWEST_SECONDS"): 0.005,
    (watch, "ASK_SECONDS"): 0.02,
    (watch, "AHEAD_SECONDS"): 0.1,
    (watch, "AWAY_SECONDS"): 0.2,
    (watch, "LAST_SECONDS"): 0.1,
}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test of the engine's parts."""
    for (module, name), value in WAITS.items():
        monkeypatch.setattr(module, name, value)


Ended = tuple[House, Run, list[Numbered]]
"""Where a run has ended, the run, and what it said."""


@pytest.fixture
async def house() -> House:
    """An engine whose answers never come to their end."""
    return House(ScriptedModel(hang="end"))


@pytest.fixture
async def ended() -> Ended:
    """A run that has ended."""
    house = House()
    run = await house.start("Bonjour")
    await events(run)
    return house, run, run.log.since(0, 100)
