"""Streamed answers byte by byte: FAULTS 12, 13 and 14, on a real socket."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from structlog.testing import capture_logs

from kit.model import ChatModel, ChatRequest, End, Message, ModelError, ModelErrorReason, Piece, Usage
from tests.servers.raw import (
    DONE,
    STREAM_END,
    Connection,
    RawServer,
    Script,
    chunk,
    completion,
    frame,
    http_chunk,
    raw_server,
    reset,
    response,
    silence,
    stream,
)

REQUEST = ChatRequest("small", [Message("user", "Bonjour")])
STOP = frame(chunk(finish="stop"))


@pytest.fixture
async def server() -> AsyncGenerator[RawServer, None]:
    async with raw_server() as raw:
        yield raw


@pytest.fixture
async def model(server: RawServer) -> AsyncGenerator[ChatModel, None]:
    caller = ChatModel(server.base_url, None, max_attempts=1, idle_timeout=0.3)
    yield caller
    await caller.aclose()


async def read(model: ChatModel) -> tuple[str, End]:
    """The text of a stream that ends well, and its end."""
    pieces: list[str] = []
    async with aclosing(model.stream(REQUEST)) as items:
        async for item in items:
            match item:
                case Piece(text):
                    assert text
                    pieces.append(text)
                case End():
                    return "".join(pieces), item
    raise AssertionError("the stream ended without an End")


async def broken(model: ChatModel) -> tuple[str, ModelError]:
    """The text of a stream that fails, and its error."""
    text = ""
    async with aclosing(model.stream(REQUEST)) as items:
        try:
            async for item in items:
                assert isinstance(item, Piece)
                text += item.text
        except ModelError as error:
            return text, error
    raise AssertionError("the stream ended well")


async def test_a_stream_gives_its_pieces_and_its_end(server: RawServer, model: ChatModel) -> None:
    usage = {"model": "served-1", "choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 3}}
    server.play(
        stream(frame(chunk("", role="assistant")), frame(chunk("Bon")), frame(chunk("jour")), STOP, frame(usage), DONE)
    )
    text, end = await read(model)
    assert (text, end) == ("Bonjour", End(Usage(4, 3, estimated=False), "served-1", "stop"))
    assert server.requests[0].json["stream_options"] == {"include_usage": True}


async def test_the_bytes_of_one_character_may_come_in_two_chunks(server: RawServer, model: ChatModel) -> None:
    data = 'data: {"choices": [{"delta": {"content": "é€😀"}}]}\n\n'.encode()
    server.play(stream(*[bytes([byte]) for byte in data], DONE))
    assert (await read(model))[0] == "é€😀"


async def test_a_byte_that_is_not_utf8_becomes_one_replacement(server: RawServer, model: ChatModel) -> None:
    server.play(stream(b'data: {"choices": [{"delta": {"content": "a\xffb"}}]}\n\n', DONE))
    assert (await read(model))[0] == "a\ufffdb"


async def test_line_separators_of_unicode_are_text(server: RawServer, model: ChatModel) -> None:
    server.play(stream('data: {"choices": [{"delta": {"content": "a\u2028b\u0085c"}}]}\n\n'.encode(), DONE))
    assert (await read(model))[0] == "a\u2028b\u0085c"


async def test_halves_of_a_surrogate_pair_in_two_frames_are_one_character(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk("a\ud83d")), frame(chunk("\ude00b\x00\ud800")), STOP, DONE))
    assert (await read(model))[0] == "a😀b\ufffd"


async def test_the_variants_of_the_format_are_read(server: RawServer, model: ChatModel) -> None:
    lines = b': keep\r\n\r\ndata:{"choices": [{"delta":\r\ndata: {"content": "Oui"}}]}\r\n\r\n'
    server.play(stream(lines, b"data: [DONE]"))
    assert (await read(model))[0] == "Oui"


async def test_reasoning_never_reaches_the_caller(server: RawServer, model: ChatModel) -> None:
    hidden = frame(chunk(None, reasoning_content="SECRET", reasoning="SECRET"))
    parts = frame(
        chunk([{"type": "thinking", "thinking": [{"type": "text", "text": "SECRET"}]}, {"type": "text", "text": "Oui"}])
    )
    tagged = [frame(chunk(piece)) for piece in ("<thi", "nk>SEC", "RET</th", "ink>\n", "\n")]
    server.play(stream(hidden, *tagged, parts, STOP, DONE))
    assert (await read(model))[0] == "Oui"


async def test_hidden_reasoning_is_part_of_an_estimate(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk(None, reasoning_content="a" * 30)), frame(chunk("Oui")), STOP, DONE))
    assert (await read(model))[1].usage == Usage(7, 10, estimated=True)


async def test_a_zero_of_the_server_stays_zero(server: RawServer, model: ChatModel) -> None:
    last = {**chunk(finish="stop"), "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    server.play(stream(frame(chunk("Oui")), frame(last), DONE))
    assert (await read(model))[1].usage == Usage(0, 0, estimated=False)


async def test_unknown_stream_options_are_left_out_from_then_on(server: RawServer, model: ChatModel) -> None:
    refusal = b'{"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]}'
    server.play(response(refusal, "422 Unprocessable Entity"), stream(frame(chunk("Oui")), STOP, DONE))
    assert [(await read(model))[0] for _ in range(2)] == ["Oui", "Oui"]
    assert ["stream_options" in request.json for request in server.requests] == [True, False, False]


async def test_a_stream_without_done_but_with_a_finish_reason_is_whole(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk("Oui")), frame(chunk(finish="length"))))
    assert (await read(model))[1].finish_reason == "length"


@pytest.mark.parametrize("then", [reset, silence])
async def test_a_fault_after_the_finish_reason_takes_nothing_away(
    server: RawServer, model: ChatModel, then: Script
) -> None:
    server.play(stream(frame(chunk("Oui")), STOP, then=then))
    assert (await read(model))[0] == "Oui"


async def test_a_finished_stream_leaves_its_connection_to_the_next(server: RawServer, model: ChatModel) -> None:
    async def end_a_moment_later(connection: Connection) -> None:
        await asyncio.sleep(0.05)
        await connection.send(STREAM_END)

    server.play(stream(frame(chunk("Oui")), STOP, DONE, then=end_a_moment_later))
    for _ in range(3):
        await read(model)
    assert (len(server.requests), server.connections) == (3, 1)


@pytest.mark.parametrize(
    ("frames", "text", "reason"),
    [
        ([frame(chunk("Oui"))], "Oui", ModelErrorReason.INTERRUPTED),
        ([], "", ModelErrorReason.MALFORMED),
        ([DONE], "", ModelErrorReason.MALFORMED),
        ([STOP, DONE], "", ModelErrorReason.MALFORMED),
        ([frame(chunk(" \n")), STOP, DONE], "", ModelErrorReason.MALFORMED),
        ([frame(chunk("<think>SECRET")), STOP, DONE], "", ModelErrorReason.MALFORMED),
        ([frame(chunk("Oui")), b"data: {broken\n\n", STOP, DONE], "Oui", ModelErrorReason.MALFORMED),
        ([frame(chunk("Oui")), b"data: []\n\n", STOP, DONE], "Oui", ModelErrorReason.MALFORMED),
        ([frame({"error": {"message": "SECRET"}}), DONE], "", ModelErrorReason.MALFORMED),
        ([frame(chunk("Oui")), frame({"error": "SECRET"}), DONE], "Oui", ModelErrorReason.INTERRUPTED),
        ([frame(chunk("Oui")), b"event: error\n" + frame({"object": "error"})], "Oui", ModelErrorReason.INTERRUPTED),
    ],
)
async def test_a_stream_that_breaks_is_no_success(
    server: RawServer, model: ChatModel, frames: list[bytes], text: str, reason: ModelErrorReason
) -> None:
    server.play(stream(*frames))
    seen, error = await broken(model)
    assert (seen, error.reason, error.retryable) == (text, reason, True)
    assert "SECRET" not in str(error)


async def test_a_200_with_an_error_body_is_no_success(server: RawServer, model: ChatModel) -> None:
    server.play(response(b'{"error": {"message": "SECRET"}}'))
    assert (await broken(model))[1].reason is ModelErrorReason.MALFORMED


async def test_a_whole_answer_instead_of_a_stream_is_no_success(server: RawServer, model: ChatModel) -> None:
    server.play(completion("Oui"))
    assert (await broken(model))[1].reason is ModelErrorReason.MALFORMED


async def test_a_cut_in_the_middle_keeps_what_came_and_counts_it(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk("a" * 33)), then=reset))
    text, error = await broken(model)
    assert (text, error.reason, error.usage) == ("a" * 33, ModelErrorReason.INTERRUPTED, Usage(7, 10, estimated=True))


@pytest.mark.parametrize(("sent", "text"), [([], ""), ([frame(chunk("Oui"))], "Oui")])
async def test_silence_before_or_within_a_stream_runs_into_the_idle_timeout(
    server: RawServer, model: ChatModel, sent: list[bytes], text: str
) -> None:
    server.play(stream(*sent, then=silence))
    seen, error = await broken(model)
    assert (seen, error.reason) == (text, ModelErrorReason.TIMEOUT)


async def test_a_stream_whose_headers_never_come_runs_into_the_timeout(server: RawServer) -> None:
    server.play(silence)
    model = ChatModel(server.base_url, None, timeout=0.2)
    assert (await broken(model))[1].reason is ModelErrorReason.TIMEOUT
    await model.aclose()
    assert len(server.requests) == 1


async def test_an_endless_line_is_cut_off(server: RawServer, model: ChatModel) -> None:
    async def pour(connection: Connection) -> None:
        while True:
            await connection.send(http_chunk(b"x" * 65536))

    server.play(stream(then=pour))
    assert (await broken(model))[1].reason is ModelErrorReason.MALFORMED
    await server.until(lambda: server.open == 0, seconds=1)


async def test_a_stream_that_is_read_to_its_end_is_logged_as_whole(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk("Oui")), STOP, DONE))
    with capture_logs() as logs:
        await read(model)
    assert [log["status"] for log in logs if log["event"] == "model call"] == [200]


async def test_a_stream_that_is_left_is_logged_as_cancelled(server: RawServer, model: ChatModel) -> None:
    server.play(stream(frame(chunk("Oui")), STOP, DONE))
    with capture_logs() as logs:
        async with aclosing(model.stream(REQUEST)) as items:
            await anext(items)
    assert [log["status"] for log in logs if log["event"] == "model call"] == ["cancelled"]
