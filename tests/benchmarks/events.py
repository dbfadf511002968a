"""How long one event takes to be put on the wire, sealed and opened: `python -m tests.benchmarks.events`.

Every reader has an event put on the wire once, and the replay log has it sealed once. Aimed at: 25 µs for a piece of an
answer on its way to one reader and into the log.
"""

import secrets
import timeit
from collections.abc import Callable
from datetime import UTC, datetime

from kit.ids import new_id
from services.engine.adapters.sealed_events import SealedEvents
from services.engine.events import Content, Event, Numbered, ThinkingStep
from services.engine.wire_events import event_to_wire

TIMES = 20_000
EVENTS: dict[str, Event] = {
    "a piece": Content("quelques mots d'une réponse"),
    "4 kB": Content("é" * 2048),
    "a step": ThinkingStep(
        1, 5, "started", "Étudier les sources", "📊", "execute", new_id(), new_id(), "", "large", 1200, 0.5, 900
    ),
}


def main() -> None:
    """Measure and print a table."""
    run_id = new_id()
    sealed = SealedEvents(run_id, secrets.token_bytes(32))
    print(f"{'µs':10}{'to wire':>10}{'sealed':>10}{'opened':>10}")
    for name, event in EVENTS.items():
        numbered = Numbered(1234, datetime.now(UTC), event)
        entry = sealed.seal(numbered)
        took = [
            _microseconds(lambda: event_to_wire(run_id, numbered)),  # noqa: B023
            _microseconds(lambda: sealed.seal(numbered)),  # noqa: B023
            _microseconds(lambda: sealed.open(1234, entry)),  # noqa: B023
        ]
        print(f"{name:10}" + "".join(f"{microseconds:10.1f}" for microseconds in took))


def _microseconds(work: Callable[[], object]) -> float:
    """Of the quickest of five rounds: what else the machine does only adds."""
    return min(timeit.repeat(work, number=TIMES, repeat=5)) / TIMES * 1e6


if __name__ == "__main__":
    main()
