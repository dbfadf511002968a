"""What engine and gateway cost on the way of an answer: `python -m tests.benchmarks.stream`.

Every figure compares the product with a bare client of the same model server, the two in turn, in one run on one
machine. Exit code 1: a bound isn't kept. The run of 10,000 events takes over four minutes and 1,000 runs one or two;
`--quick` leaves both out.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing

import uvloop

from tests.benchmarks.figures import HEAD, Figure
from tests.benchmarks.memory import memory
from tests.benchmarks.model import Body, Model, Timed, serving
from tests.benchmarks.product import Product, product

QUESTION = "Que faut-il savoir des coopératives ?"
HARD = "Compare trois façons de financer une coopérative, avec budget et étapes"
WORDS = "une réponse vient par petits morceaux, un mot ou presque à la fois"
CHUNKS = 1_000
PIECES = [f"{word} " for word in WORDS.split()]
STREAM_ROUNDS = 11
FIRST_PIECES = 100

THINKS = 100
THINK_ROUNDS = 5
CALL_MS = 50
PLAN = '{"steps": [{"title": "Étudier les parts", "goal": "coûts"}, {"title": "Étudier les prêts", "goal": "taux"}]}'
WORK = "Une étape de réflexion.\n\n" + "Ce qu'un modèle en écrit d'ordinaire, en quelques phrases. " * 15
DOUBTS = '{"satisfied": false, "summary": "deux points", "weaknesses": ["les taux sont supposés", "rien sur la durée"]}'
CALLS = 5
"""Of one think: a plan of two steps, each of the steps, the critique, the synthesis."""
SYNTHESIS_CHUNKS = 300


async def throughput(model: Model, stack: Product, streams: int) -> Figure:
    """Bytes of answer a second, so many answers of 1,000 chunks at once, as a share of the bare client's."""
    await model.behave({"action": {"chunks": pieces(CHUNKS)}})
    ratios: list[float] = []
    speeds: list[float] = []
    for _ in range(STREAM_ROUNDS + 1):
        bare, bare_bytes = await _together(*(model.answer(QUESTION) for _ in range(streams)))
        through, through_bytes = await _together(*(stack.answer(QUESTION, thinking="off") for _ in range(streams)))
        assert through_bytes == bare_bytes, "bytes were lost"
        ratios.append(bare / through)
        speeds.append(bare_bytes / bare / 1000)
    # The first round has opened the connections.
    aside = f"bare {statistics.median(speeds[1:]):.0f} kB/s"
    name = f"bytes/s, {streams} stream{'s' * (streams > 1)} of {CHUNKS} chunks"
    return Figure(name, [100 * ratio for ratio in ratios[1:]], "%", at_least=50, aside=aside)


async def first_piece(model: Model, stack: Product) -> Figure:
    """How much later the first piece of a classic answer comes."""
    await model.behave({"action": {"chunks": PIECES}})
    bare: list[float] = []
    through: list[float] = []
    for _ in range(FIRST_PIECES + 5):
        bare.append((await model.answer(QUESTION)).first * 1000)
        through.append((await stack.answer(QUESTION, thinking="off")).first * 1000)
    added = [there - here for here, there in zip(bare, through, strict=True)][5:]
    aside = f"bare {statistics.median(bare[5:]):.1f} ms, p95 added {statistics.quantiles(added, n=20)[18]:.1f} ms"
    return Figure("added to the first piece, p50", added, "ms", at_most=10, aside=aside)


async def thinks(model: Model, stack: Product) -> list[Figure]:
    """The time of 100 thinks at once, as a multiple of the same calls made bare."""
    await slow_model(model)
    await stack.think(HARD)
    bodies: list[Body] = await model.bodies()
    assert len(bodies) == CALLS, f"a think made {len(bodies)} calls"
    ratios: list[float] = []
    times: list[float] = []
    thought: list[bool] = []
    for _ in range(THINK_ROUNDS + 1):
        began = time.perf_counter()
        await asyncio.gather(*(model.in_turn(bodies) for _ in range(THINKS)))
        bare = time.perf_counter() - began
        began = time.perf_counter()
        thought += await asyncio.gather(*(stack.think(HARD) for _ in range(THINKS)))
        ratios.append((time.perf_counter() - began) / bare)
        times.append(bare)
    aside = f"bare {statistics.median(times[1:]):.2f} s"
    return [
        Figure(f"{THINKS} thinks of {CALLS} calls of {CALL_MS} ms", ratios[1:], "×", at_most=2.5, aside=aside),
        Figure("thinks of these that had a slot at once", [100 * statistics.mean(thought)], "%", at_least=100),
    ]


async def slow_model(model: Model) -> None:
    """Have it take 50 ms a call and little of the processor, as a model on another machine does."""
    said: dict[str, Body] = {
        "decompose": {"text": PLAN},
        "execute": {"text": WORK},
        "critique": {"text": DOUBTS},
        "synthesize": {"chunks": pieces(SYNTHESIS_CHUNKS)},
    }
    rules = [{"match": {"role": role}, "action": {"delay_ms": CALL_MS, **text}} for role, text in said.items()]
    await model.behave(*rules)


def pieces(count: int) -> list[str]:
    """So many pieces of an answer, each a word."""
    return [PIECES[place % len(PIECES)] for place in range(count)]


async def _together(*answers: Awaitable[Timed]) -> tuple[float, int]:
    """Seconds until all are there, and the bytes of their text."""
    began = time.perf_counter()
    came = await asyncio.gather(*answers)
    return time.perf_counter() - began, sum(answer.size for answer in came)


async def measured(quick: bool) -> AsyncGenerator[Figure, None]:
    """Each figure as soon as it is known."""
    async with serving() as model, product(model) as stack:
        yield await throughput(model, stack, 1)
        yield await throughput(model, stack, 20)
        yield await first_piece(model, stack)
        for figure in await thinks(model, stack):
            yield figure
        if not quick:
            for figure in await memory(model, stack):
                yield figure


async def main(quick: bool) -> bool:
    """Measure and print a table; whether every bound is kept."""
    print(HEAD)
    kept = True
    async with aclosing(measured(quick)) as figures:
        async for figure in figures:
            print(figure.row(), flush=True)
            kept = kept and figure.kept
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.stream")
    parser.add_argument("--quick", action="store_true", help="without the figures of memory")
    sys.exit(0 if uvloop.run(main(parser.parse_args().quick)) else 1)
