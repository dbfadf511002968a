"""A model call against a server that fails: FAULTS 10 and 11, on a real socket."""

import time
from collections.abc import AsyncGenerator

import pytest

from kit.model import ChatModel, ChatRequest, Message, Meter, ModelError, ModelErrorReason, Piece, Usage
from tests.servers.raw import Connection, RawServer, chunk, completion, frame, raw_server, reset, response, stream

KEY = "sk-CANARY-key"
REQUEST = ChatRequest("small", [Message("user", "CANARY-question")])
NOW = 1_764_500_000.0  # Sun, 30 Nov 2025 10:53:20 GMT
FINE = completion("Bonjour", usage={"prompt_tokens": 3, "completion_tokens": 2})


@pytest.fixture
async def server() -> AsyncGenerator[RawServer, None]:
    async with raw_server() as raw:
        yield raw


class Patient:
    """A model whose waits are only written down."""

    def __init__(self, base_url: str, **options: int) -> None:
        self.waits: list[float] = []
        self.meter = Meter()
        self.model = ChatModel(
            base_url,
            KEY,
            clock=lambda: NOW,
            sleep=self._sleep,
            random=lambda: 0.0,
            **options,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def fails(self, request: ChatRequest = REQUEST) -> ModelError:
        with pytest.raises(ModelError) as failure:
            await self.model.chat(request, self.meter)
        return failure.value


@pytest.fixture
async def patient(server: RawServer) -> AsyncGenerator[Patient, None]:
    caller = Patient(server.base_url)
    yield caller
    await caller.model.aclose()


async def test_an_answer_comes_with_its_usage_and_the_model_that_served_it(server: RawServer, patient: Patient) -> None:
    server.play(FINE)
    answer = await patient.model.chat(REQUEST)
    assert (answer.text, answer.usage, answer.model) == ("Bonjour", Usage(3, 2, estimated=False), "served-1")


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        ("30", 30.0),
        ("Sun, 30 Nov 2025 10:53:32 GMT", 12.0),
        ("-3", 0.5),
        ("soon", 0.5),
        ("Sun, 30 Nov 2025 10:00:00 GMT", 0.5),
    ],
)
async def test_a_429_waits_as_its_retry_after_says(
    server: RawServer, patient: Patient, header: str, wait: float
) -> None:
    server.play(response(b"", "429 Too Many Requests", retry_after=header), FINE)
    await patient.model.chat(REQUEST)
    assert patient.waits == [wait]


async def test_a_retry_after_is_really_waited_for(server: RawServer) -> None:
    server.play(response(b"", "429 Too Many Requests", retry_after="1"), FINE)
    model = ChatModel(server.base_url, KEY)
    start = time.monotonic()
    await model.chat(REQUEST)
    await model.aclose()
    assert time.monotonic() - start >= 1.0


async def test_a_retry_after_past_thirty_seconds_fails_at_once(server: RawServer, patient: Patient) -> None:
    server.play(response(b"", "429 Too Many Requests", retry_after="31"), FINE)
    error = await patient.fails()
    assert (error.reason, error.retryable, error.retry_after, error.attempts, error.status) == (
        ModelErrorReason.RATE_LIMITED,
        True,
        31.0,
        1,
        429,
    )
    assert (patient.waits, len(server.requests)) == ([], 1)


@pytest.mark.parametrize("status", ["408 Request Timeout", "425 Too Early", "500 Oops", "503 Busy", "529 Overloaded"])
async def test_three_failures_are_the_end(server: RawServer, patient: Patient, status: str) -> None:
    server.play(response(b"{}", status))
    error = await patient.fails()
    assert (error.reason, error.retryable, error.attempts) == (ModelErrorReason.UNAVAILABLE, True, 3)
    assert (patient.waits, len(server.requests)) == ([0.5, 1.0], 3)


async def test_every_try_is_counted(server: RawServer, patient: Patient) -> None:
    server.play(response(b"", "500 Oops"), response(b"", "429 Slow", retry_after="4"), FINE)
    await patient.model.chat(REQUEST, patient.meter)
    assert (patient.meter.tries, patient.meter.failed) == (3, [])
    assert (patient.meter.used, patient.meter.model) == (Usage(3, 2, estimated=False), "served-1")


@pytest.mark.parametrize("status", ["400 Bad", "401 Who", "403 No", "404 Where", "409 Conflict", "413 Big", "422 Odd"])
async def test_other_refusals_are_not_tried_again(server: RawServer, patient: Patient, status: str) -> None:
    server.play(response(b"{}", status))
    error = await patient.fails()
    assert (error.attempts, len(server.requests)) == (1, 1)
    assert error.retryable is status.startswith("409")


async def test_a_refused_connection_is_tried_three_times() -> None:
    async with raw_server() as gone:
        pass
    patient = Patient(gone.base_url)
    error = await patient.fails()
    await patient.model.aclose()
    assert (error.reason, error.attempts, error.status) == (ModelErrorReason.UNAVAILABLE, 3, None)


async def test_a_reset_connection_is_tried_again(server: RawServer, patient: Patient) -> None:
    server.play(reset, FINE)
    assert (await patient.model.chat(REQUEST)).text == "Bonjour"


async def test_an_answer_that_is_not_http_is_unavailable(server: RawServer, patient: Patient) -> None:
    server.play(lambda connection: connection.send(b"SSH-2.0-CANARY-answer\r\n\r\n"))
    error = await patient.fails()
    assert error.reason is ModelErrorReason.UNAVAILABLE
    assert "CANARY" not in str(error)


async def test_a_body_cut_short_is_tried_again(server: RawServer, patient: Patient) -> None:
    async def cut(connection: Connection) -> None:
        await connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{")
        connection.close()

    server.play(cut, FINE)
    assert (await patient.model.chat(REQUEST)).text == "Bonjour"


async def test_a_server_that_never_answers_runs_into_the_timeout(server: RawServer) -> None:
    server.play(lambda connection: connection.wait_for_client_to_leave())
    model = ChatModel(server.base_url, KEY, timeout=0.2)
    with pytest.raises(ModelError) as failure:
        await model.chat(REQUEST)
    await model.aclose()
    assert (failure.value.reason, failure.value.retryable) == (ModelErrorReason.TIMEOUT, True)
    assert len(server.requests) == 1


@pytest.mark.parametrize("content", [None, "", "  \n", [], "<think>rien d'autre"])
async def test_an_empty_answer_is_tried_once_more_and_is_no_success(
    server: RawServer, patient: Patient, content: object
) -> None:
    server.play(completion(content))
    error = await patient.fails()
    assert (error.reason, error.attempts, len(server.requests)) == (ModelErrorReason.MALFORMED, 2, 2)


@pytest.mark.parametrize("body", [b'{"error": {"message": "CANARY-answer"}}', b'{"choices": [', b"[]", b""])
async def test_a_200_without_an_answer_is_no_success(server: RawServer, patient: Patient, body: bytes) -> None:
    server.play(response(body))
    error = await patient.fails()
    assert error.reason is ModelErrorReason.MALFORMED
    assert "CANARY" not in str(error)


async def test_a_byte_that_is_not_utf8_becomes_one_replacement(server: RawServer, patient: Patient) -> None:
    server.play(response(b'{"choices": [{"message": {"content": "a\xffb"}}]}'))
    assert (await patient.model.chat(REQUEST)).text == "a\ufffdb"


async def test_what_failed_tries_cost_is_told_with_the_answer(server: RawServer, patient: Patient) -> None:
    server.play(response(b"", "500 Oops"), completion("", usage={"prompt_tokens": 3, "completion_tokens": 0}), FINE)
    await patient.model.chat(REQUEST, patient.meter)
    assert patient.meter.failed == [Usage(3, 0, estimated=False)]
    assert patient.meter.used == Usage(3, 2, estimated=False)


async def test_what_failed_tries_cost_is_told_when_none_succeeds(server: RawServer, patient: Patient) -> None:
    server.play(completion("", usage={"prompt_tokens": 3, "completion_tokens": 1}))
    error = await patient.fails()
    assert (error.attempts, error.usage) == (2, Usage(3, 1, estimated=False))
    assert (patient.meter.failed, patient.meter.used) == ([error.usage], error.usage)


async def test_an_unknown_response_format_is_left_out_from_then_on(server: RawServer, patient: Patient) -> None:
    server.play(response(b'{"error": "unsupported: response_format"}', "400 Bad Request"), FINE)
    request = ChatRequest("small", REQUEST.messages, json_schema={"type": "object"})
    await patient.model.chat(request)
    await patient.model.chat(request)
    assert ["response_format" in request.json for request in server.requests] == [True, False, False]
    assert patient.waits == []


async def test_a_stream_fails_over_only_before_its_first_piece(server: RawServer, patient: Patient) -> None:
    server.play(response(b"", "500 Oops"), stream(frame(chunk("Bon")), then=reset), FINE)
    items = patient.model.stream(REQUEST)
    assert await anext(items) == Piece("Bon")
    with pytest.raises(ModelError) as failure:
        await anext(items)
    assert (failure.value.reason, failure.value.attempts) == (ModelErrorReason.INTERRUPTED, 2)
    assert failure.value.usage == Usage(9, 1, estimated=True)


async def test_the_models_are_listed_after_a_failure(server: RawServer, patient: Patient) -> None:
    server.play(response(b"", "500 Oops"), response(b'{"data": [{"id": "a"}, {"id": "b"}, {}, 3]}'))
    assert await patient.model.models() == ["a", "b"]
    assert server.requests[-1].line == "GET /v1/models HTTP/1.1"


async def test_a_list_of_models_that_cannot_be_read_is_malformed(server: RawServer, patient: Patient) -> None:
    server.play(response(b'{"data": null}'))
    with pytest.raises(ModelError) as failure:
        await patient.model.models()
    assert failure.value.reason is ModelErrorReason.MALFORMED
