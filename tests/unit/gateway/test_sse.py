"""A run's events written to one reader."""

import asyncio
from collections.abc import AsyncGenerator

import grpc
import pytest
from lintello.engine.v1 import engine_pb2 as pb
from starlette.types import Message

from gateway.following import Following
from gateway.metrics import Metrics
from gateway.sse import EventStream, frame
from kit.errors import RemoteError

STARTED = pb.ThinkingEvent(run_id="r", seq=1, run_started=pb.RunStarted(conversation_id="c"))


class Reader:
    """The other end of a response; it goes away when told to, and may stall at a text."""

    def __init__(self, stalls_at: bytes | None = None) -> None:
        self.stalls_at = stalls_at
        self.sent: list[bytes] = []
        self.gone = asyncio.Event()
        self.wrote = asyncio.Condition()

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        body = message.get("body", b"")
        self.sent.append(body)
        async with self.wrote:
            self.wrote.notify_all()
        if self.stalls_at is not None and self.stalls_at in body:
            await asyncio.Event().wait()

    async def until(self, text: bytes) -> None:
        async with asyncio.timeout(5), self.wrote:
            await self.wrote.wait_for(lambda: text in b"".join(self.sent))


async def watch(_: int) -> AsyncGenerator[pb.ThinkingEvent, None]:
    """An engine that is away."""
    raise RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "")
    yield


class Events:
    """A run that says one thing and no more, and whose end takes a while to clean up."""

    def __init__(self, breaks: bool = False) -> None:
        """With `breaks` its call breaks after the one thing."""
        self.breaks = breaks
        self.ended = False
        self.cleaned = False

    async def stream(self) -> AsyncGenerator[pb.ThinkingEvent, None]:
        try:
            yield STARTED
            yield pb.ThinkingEvent(run_id="r", seq=2, content=pb.Content(content="word"))
            if not self.breaks:
                await asyncio.Event().wait()
        finally:
            self.ended = True
            await asyncio.sleep(0.01)
            self.cleaned = True


@pytest.fixture
def events() -> Events:
    return Events()


async def stream(events: Events, closing: asyncio.Event | None = None, metrics: Metrics | None = None) -> EventStream:
    call = events.stream()
    following = Following("r", watch, begun=(await anext(call), call), away_seconds=0.05)
    return EventStream(following, closing or asyncio.Event(), metrics or Metrics(), keep_alive=0.01)


def play(response: EventStream, reader: Reader) -> asyncio.Task[None]:
    return asyncio.create_task(response({"type": "http"}, reader.receive, reader.send))


async def test_a_comment_keeps_the_line_alive_before_the_first_content(events: Events) -> None:
    reader = Reader()
    task = play(await stream(events), reader)
    await reader.until(b": keep-alive\n\n")
    reader.gone.set()
    await task


async def test_a_reader_that_goes_ends_the_call(events: Events) -> None:
    reader = Reader()
    task = play(await stream(events), reader)
    await reader.until(b"word")
    reader.gone.set()
    await asyncio.wait_for(task, 5)
    assert events.ended


async def test_a_reader_that_goes_while_it_stalls_lets_the_call_clean_up(events: Events) -> None:
    reader = Reader(stalls_at=b"word")
    task = play(await stream(events), reader)
    await reader.until(b"word")
    reader.gone.set()
    await asyncio.wait_for(task, 5)
    assert events.cleaned


async def test_a_cancelled_request_lets_the_call_clean_up(events: Events) -> None:
    reader = Reader(stalls_at=b"word")
    task = play(await stream(events), reader)
    await reader.until(b"word")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.cleaned


async def test_a_closing_gateway_ends_the_stream_in_good_order_and_makes_nothing_up(events: Events) -> None:
    reader, closing = Reader(), asyncio.Event()
    task = play(await stream(events, closing), reader)
    await reader.until(b"run_started")
    closing.set()
    await asyncio.wait_for(task, 5)
    assert reader.sent[-1] == b""
    assert b"done" not in b"".join(reader.sent)


async def test_a_run_that_cannot_be_found_again_ends_the_stream_in_good_order_and_makes_nothing_up() -> None:
    reader = Reader()
    await asyncio.wait_for(play(await stream(Events(breaks=True)), reader), 5)
    assert reader.sent[-1] == b""
    assert b"".join(reader.sent).count(b"id: ") == 2


async def test_comments_keep_the_line_alive_while_a_run_is_tried_to_be_found_again() -> None:
    reader = Reader()
    await asyncio.wait_for(play(await stream(Events(breaks=True)), reader), 5)
    last = max(place for place, body in enumerate(reader.sent) if body.startswith(b"id: "))
    assert b": keep-alive\n\n" in reader.sent[last:]


async def test_open_streams_are_counted(events: Events) -> None:
    reader, metrics = Reader(), Metrics()
    task = play(await stream(events, metrics=metrics), reader)
    await reader.until(b"run_started")
    open_then = metrics.text()
    reader.gone.set()
    await task
    assert b"lintello_sse_streams_open 1.0" in open_then
    assert b"lintello_sse_streams_open 0.0" in metrics.text()


def test_a_frame_is_an_id_line_and_a_data_line() -> None:
    assert frame({"seq": 3, "content": "a\nb"}) == b'id: 3\ndata: {"seq":3,"content":"a\\nb"}\n\n'


def test_separators_that_some_readers_split_at_are_escaped() -> None:
    assert frame({"seq": 1, "content": "\u2028\u2029\x85"}).count(b"\\u") == 3
