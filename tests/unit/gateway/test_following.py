"""Following a run over calls that break."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import grpc
import pytest
from lintello.engine.v1 import engine_pb2 as pb

from gateway.following import Following
from kit.errors import RemoteError

Event = pb.ThinkingEvent
AWAY = RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "")
AHEAD = RemoteError(grpc.StatusCode.OUT_OF_RANGE, "SEQUENCE_AHEAD", "")
GONE = RemoteError(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "")
FAULT = RemoteError(grpc.StatusCode.INTERNAL, "INTERNAL", "")
LAST = 5


def event(seq: int) -> Event:
    """One of a run of five events."""
    if seq == LAST:
        return Event(run_id="r", seq=seq, done=pb.Done(conversation_id="c"))
    return Event(run_id="r", seq=seq, content=pb.Content(content="x"))


class Engine:
    """Answers call after call: with the events of these numbers, then as the last item says; the last call again and
    again."""

    def __init__(self, *calls: Sequence[int | RemoteError | None]) -> None:
        """An item is an event's number, an error that ends the call, or None for silence without end."""
        self.calls = list(calls)
        self.asked: list[int] = []
        self.closed = 0

    async def watch(self, after: int) -> AsyncGenerator[Event, None]:
        self.asked.append(after)
        items = self.calls.pop(0) if len(self.calls) > 1 else self.calls[0]
        try:
            for item in items:
                if item is None:
                    await asyncio.Event().wait()
                elif isinstance(item, int):
                    yield event(item)
                else:
                    raise item
        finally:
            self.closed += 1

    def following(self, after: int = 0, away_seconds: float = 5.0) -> Following:
        return Following("r", self.watch, after, away_seconds=away_seconds)

    async def begun(self, away_seconds: float = 5.0) -> Following:
        """What follows an event that came already."""
        call = self.watch(0)
        return Following("r", self.watch, begun=(await anext(call), call), away_seconds=away_seconds)


async def numbers(following: Following) -> list[int]:
    async with aclosing(following), asyncio.timeout(10):
        return [event.seq async for event in following]


async def test_a_call_that_holds_is_the_whole_run() -> None:
    assert await numbers(Engine([1, 2, 3, 4, 5]).following()) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("end", [[AWAY], []], ids=["broken", "ended early"])
async def test_a_call_that_breaks_is_made_anew_where_it_was(end: list[RemoteError]) -> None:
    engine = Engine([1, 2, *end], [3, *end], [4, 5])
    assert await numbers(await engine.begun()) == [1, 2, 3, 4, 5]
    assert engine.asked == [0, 2, 3]


async def test_an_event_that_comes_again_is_passed_over() -> None:
    assert await numbers(Engine([1, 2, AWAY], [1, 2, 3, 3, 4, 5]).following()) == [1, 2, 3, 4, 5]


async def test_a_gap_is_filled_by_asking_again() -> None:
    engine = Engine([1, 3, 4], [2, 3, 4, 5])
    assert await numbers(engine.following()) == [1, 2, 3, 4, 5]
    assert engine.closed == 2


async def test_a_gap_at_the_very_beginning_is_no_end() -> None:
    assert await numbers(Engine([4, 5], [3, 4, 5]).following(after=2)) == [3, 4, 5]


async def test_a_run_that_is_gone_ends_it_with_that_error() -> None:
    engine = Engine([1, 2, AWAY], [GONE])
    following = await engine.begun()
    with pytest.raises(RemoteError) as refused:
        await numbers(following)
    assert refused.value is GONE


async def test_a_fault_is_not_tried_again() -> None:
    engine = Engine([FAULT])
    with pytest.raises(RemoteError):
        await numbers(engine.following())
    assert engine.asked == [0]


async def test_an_engine_that_stays_away_is_given_up_after_the_time() -> None:
    engine = Engine([1, AWAY], [AWAY])
    following = await engine.begun(away_seconds=0.5)
    with pytest.raises(RemoteError) as refused:
        await numbers(following)
    assert refused.value is AWAY
    assert len(engine.asked) > 2


async def test_events_that_come_start_the_time_again() -> None:
    calls: list[Sequence[int | RemoteError | None]] = []
    for number in range(1, LAST):
        calls += [[number, AWAY], [AWAY], [AWAY]]
    engine = Engine(*calls, [LAST])
    assert await numbers(engine.following(away_seconds=0.5)) == [1, 2, 3, 4, 5]


async def test_an_engine_that_has_not_come_as_far_as_we_have_is_waited_for() -> None:
    """One that died may have told more than it could write; the run's end is numbered after it."""
    assert await numbers(await Engine([1, 2, 3, AWAY], [AHEAD], [AHEAD], [4, 5]).begun()) == [1, 2, 3, 4, 5]


async def test_a_reader_that_says_more_than_there_is_hears_it_at_once() -> None:
    engine = Engine([AHEAD])
    with pytest.raises(RemoteError):
        await engine.following(after=9).is_over(5)
    assert engine.asked == [9]


async def test_a_run_with_nothing_left_is_over() -> None:
    following = Engine([]).following(after=LAST)
    assert await following.is_over(5)
    assert await numbers(following) == []


async def test_a_silent_run_is_not_over_and_its_next_event_is_not_lost() -> None:
    heard = asyncio.Event()

    async def watch(_: int) -> AsyncGenerator[Event, None]:
        await heard.wait()
        for number in (4, 5):
            yield event(number)

    following = Following("r", watch, 3)
    assert not await following.is_over(0.05)
    heard.set()
    assert await numbers(following) == [4, 5]


async def test_a_first_event_that_was_waited_for_is_not_lost() -> None:
    following = Engine([1, 2, 3, 4, 5]).following()
    assert not await following.is_over(5)
    assert await numbers(following) == [1, 2, 3, 4, 5]


async def test_closing_ends_a_call_that_is_waited_for() -> None:
    engine = Engine([None])
    following = engine.following()
    await following.is_over(0.05)
    await following.aclose()
    assert engine.closed == 1


async def test_closing_ends_a_call_whose_first_event_nobody_took() -> None:
    engine = Engine([1, None])
    await (await engine.begun()).aclose()
    assert engine.closed == 1


async def test_closing_in_the_middle_ends_the_call() -> None:
    engine = Engine([1, 2, None])
    following = await engine.begun()
    await anext(following)
    await anext(following)
    await following.aclose()
    assert engine.closed == 1
