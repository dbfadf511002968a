"""How engine and gateway grow: over 1,000 runs, and within one run of 10,000 events."""

import asyncio

from tests.benchmarks.figures import Figure
from tests.benchmarks.model import Model
from tests.benchmarks.product import Product

QUESTION = "Que faut-il savoir des coopératives ?"
AT_ONCE = 5
FIRST_RUNS, RUNS = 100, 1_000
FIRST_EVENTS, EVENTS = 100, 10_000
PIECE = "mots"
"""Four characters: one token of the model's."""
PIECES_A_SECOND = 42
"""Slower than pieces are joined at, so that nearly every one is an event."""
SPARE = 1.05
"""More pieces than events: those that a busy machine joins all the same."""
MOST_GROWTH = 5
SETTLE_SECONDS = 2


async def memory(model: Model, stack: Product) -> list[Figure]:
    """Growth of each process in per cent."""
    return [*await over_runs(model, stack), *await within_a_run(model, stack)]


async def over_runs(model: Model, stack: Product) -> list[Figure]:
    """From run 100 to run 1,000; each answers a hundred pieces."""
    await model.behave({"action": {"chunks": [PIECE] * 100}})
    await _ask(stack, FIRST_RUNS)
    before = stack.resident()
    await _ask(stack, RUNS - FIRST_RUNS)
    return _figures(f"from run {FIRST_RUNS} to {RUNS}", before, stack.resident())


async def within_a_run(model: Model, stack: Product) -> list[Figure]:
    """From event 100 of a run to its end."""
    await model.behave({"action": {"chunks": [PIECE] * int(EVENTS * SPARE), "rate": PIECES_A_SECOND}})
    kinds: list[str] = []
    reading = asyncio.create_task(stack.read({"message": QUESTION, "thinking": "off"}, kinds))
    while len(kinds) < FIRST_EVENTS:
        await asyncio.sleep(0.1)
    before = most = stack.resident()
    while not reading.done():
        await asyncio.wait([reading], timeout=1)
        now = stack.resident()
        most = {name: max(most[name], now[name]) for name in most}
    await reading
    assert len(kinds) >= EVENTS, f"only {len(kinds)} events"
    return _figures(f"within {len(kinds)} events of a run", before, most)


async def _ask(stack: Product, runs: int) -> None:
    for _ in range(runs // AT_ONCE):
        await asyncio.gather(*(stack.answer(QUESTION, thinking="off") for _ in range(AT_ONCE)))
    await asyncio.sleep(SETTLE_SECONDS)


def _figures(span: str, before: dict[str, int], after: dict[str, int]) -> list[Figure]:
    return [
        Figure(
            f"memory of {name}, {span}",
            [100 * (after[name] / size - 1)],
            "%",
            at_most=MOST_GROWTH,
            aside=f"{size / 2**20:.1f} → {after[name] / 2**20:.1f} MiB",
        )
        for name, size in before.items()
    ]
