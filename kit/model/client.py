"""A client for an OpenAI-compatible chat server."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager

import structlog

from kit.model.answer import StreamedAnswer, read_completion, read_models
from kit.model.chat import ChatRequest, Completion, End, Piece, Usage
from kit.model.errors import ModelError, ModelErrorReason
from kit.model.meter import Meter
from kit.model.retry import RetryPolicy
from kit.model.server import ChatServer, connection_failures, read_body, read_to_end
from kit.model.sse import EventParser
from kit.model.tokens import TokenRates
from kit.model.transport import CONNECTION_ERRORS, cause_of
from kit.model.wire import usage_of

_log = structlog.get_logger()


class ChatModel:
    """A chat server behind one base URL, to which `/chat/completions` and `/models` are appended.

    timeout        seconds for one try of a whole call, and for the wait for a stream's response headers.
    idle_timeout   seconds of silence allowed before the first byte of a stream's body and between its bytes.
    max_attempts   tries in all where the connection fails or the server answers 408, 425, 429, 5xx or, once, nonsense.
    max_wait       seconds a Retry-After is obeyed for; a longer one fails at once, so that another model can be asked.
    clock, sleep, random   the time in Unix seconds, the waiting and the jitter (0–1); given by tests.

    Every call raises ModelError when it failed for good. A call that runs out of time isn't tried again. Cancelling a
    call closes its connection. Use within one event loop, and `aclose` at the end.

    A `meter` given to a call says what the call has used, whatever becomes of it. What a server hasn't reported is
    estimated, by what it has reported for other calls.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout: float = 60,
        idle_timeout: float = 20,
        max_attempts: int = 3,
        max_wait: float = 30,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        self._server = ChatServer(base_url, api_key, clock)
        self._timeout = timeout
        self._idle_timeout = idle_timeout
        self._policy = RetryPolicy(max_attempts=max_attempts, max_wait=max_wait, random=random)
        self._sleep = sleep
        self._rates = TokenRates()

    def __repr__(self) -> str:
        return f"ChatModel({self._server.base_url!r})"

    async def chat(self, request: ChatRequest, meter: Meter | None = None) -> Completion:
        """The whole answer, never empty and without the model's reasoning."""
        meter = meter or Meter()
        failures: list[ModelError] = []
        while True:
            meter.begin(lambda: self._asked(request))
            try:
                with _logged(request.model, len(failures) + 1) as whole:
                    completion = await self._chat_once(request)
                    whole()
            except ModelError as error:
                await self._wait_or_raise(error, failures, meter)
                continue
            meter.end(completion.usage, completion.model)
            return completion

    async def stream(self, request: ChatRequest, meter: Meter | None = None) -> AsyncGenerator[Piece | End, None]:
        """The answer piece by piece, without the model's reasoning, and an End as its last item.

        Iterate it within `contextlib.aclosing`: closing it closes the connection. A failed stream is tried again only
        while nothing of it was given out.
        """
        meter = meter or Meter()
        failures: list[ModelError] = []
        while True:
            begun = False
            meter.begin(lambda: self._asked(request))
            try:
                with _logged(request.model, len(failures) + 1) as whole:
                    async with aclosing(self._stream_once(request, meter)) as items:
                        async for item in items:
                            begun = True
                            if isinstance(item, End):
                                whole()
                            yield item
                return
            except ModelError as error:
                if begun:
                    error.attempts = len(failures) + 1
                    meter.end(error.usage)
                    raise
                await self._wait_or_raise(error, failures, meter)

    async def models(self) -> list[str]:
        """The names of the models the server offers, in its order."""
        failures: list[ModelError] = []
        while True:
            try:
                return await self._models_once()
            except ModelError as error:
                await self._wait_or_raise(error, failures, Meter())

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._server.aclose()

    def _asked(self, request: ChatRequest) -> Usage:
        """What a call has used that was sent and isn't answered yet."""
        return usage_of(None, request, 0, self._rates)

    async def _wait_or_raise(self, error: ModelError, failures: list[ModelError], meter: Meter) -> None:
        meter.end(error.usage)
        failures.append(error)
        error.attempts = len(failures)
        wait = self._policy.wait(failures)
        if wait is None:
            raise error
        await self._sleep(wait)

    async def _chat_once(self, request: ChatRequest) -> Completion:
        with connection_failures():
            async with asyncio.timeout(self._timeout):
                body = await read_body(await self._server.ask(request, stream=False))
        return read_completion(body, request, self._rates)

    async def _models_once(self) -> list[str]:
        with connection_failures():
            async with asyncio.timeout(self._timeout):
                body = await read_body(await self._server.list_models())
        return read_models(body)

    async def _stream_once(self, request: ChatRequest, meter: Meter) -> AsyncGenerator[Piece | End, None]:
        with connection_failures():
            async with asyncio.timeout(self._timeout):
                response = await self._server.ask(request, stream=True)
        try:
            answer = StreamedAnswer(request, self._rates)
            meter.follow(answer.usage)
            events = EventParser()
            chunks = response.aiter_bytes()
            while not answer.done:
                chunk = await self._next_chunk(chunks, answer)
                for frame in events.close() if chunk is None else events.feed(chunk):
                    text = answer.feed(frame)
                    meter.model = answer.model
                    if text:
                        yield Piece(text)
                if chunk is None:
                    break
            rest, end = answer.close()
            if rest:
                yield Piece(rest)
            if answer.done:
                await read_to_end(chunks)
            yield end
        finally:
            await response.aclose()

    async def _next_chunk(self, chunks: AsyncIterator[bytes], answer: StreamedAnswer) -> bytes | None:
        """The next bytes; None at the end, which after the model's last word may also be a cut or silence."""
        try:
            async with asyncio.timeout(self._idle_timeout):
                return await anext(chunks, None)
        except TimeoutError:
            if answer.finished:
                return None
            raise answer.failure(ModelErrorReason.TIMEOUT, "the model server fell silent") from None
        except CONNECTION_ERRORS as error:
            if answer.finished:
                return None
            message = f"the connection broke within the answer ({cause_of(error)})"
            raise answer.failure(ModelErrorReason.INTERRUPTED, message) from None


@contextmanager
def _logged(model: str, attempt: int) -> Generator[Callable[[], None], None, None]:
    """Logs how a try went; what it gives is called when the answer is whole, after which it may be left."""
    start = time.perf_counter()
    outcome: int | str = "cancelled"

    def whole() -> None:
        nonlocal outcome
        outcome = 200

    try:
        yield whole
    except ModelError as error:
        outcome = str(error.reason) if error.status in (None, 200) else error.status
        raise
    finally:
        _log.info("model call", model=model, attempt=attempt, status=outcome, duration=time.perf_counter() - start)
