"""Short waits: what the engine waits for by the second, a test waits for by the millisecond."""

import pytest

from services.engine import recorder, run, runs, watch

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
