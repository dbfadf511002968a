"""An answer on its way to its client: whole or streamed, paced, and spoilt where a rule says so."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any, Final

from cli.trial.completion import CHARACTERS_PER_TOKEN, DONE, Envelope, count_tokens, encoded, error_body, frame
from cli.trial.faults import Action
from cli.trial.ledger import Call
from cli.trial.request import Request
from cli.trial.wire import JSON_TYPE, Exchange

STREAM_TYPE: Final = ("content-type", "text/event-stream; charset=utf-8")
STAND_IN: Final = "\ue0ff"
"""A private character that becomes the invalid byte on the wire."""
RESET_AFTER_SECONDS: Final = 0.05
"""Time for what was sent to reach its reader: a reset may discard what lies unread."""


@dataclass(frozen=True)
class Answer:
    """What is said, in the pieces a stream sends."""

    pieces: list[str]
    reasoning: list[str]
    finish_reason: str
    usage: dict[str, Any] | None
    envelope: Envelope

    @property
    def text(self) -> str:
        """The whole completion."""
        return "".join(self.pieces)


class Pace:
    """When each token of an answer is due: `rate` tokens a second after the first; 0 is at once."""

    def __init__(self, rate: float, first_token_seconds: float) -> None:
        self._rate = rate
        self._begin = time.monotonic() + first_token_seconds

    async def reach(self, characters: int) -> None:
        """Wait until that many characters are due."""
        due = self._begin + (characters / CHARACTERS_PER_TOKEN / self._rate if self._rate > 0 else 0.0)
        await asyncio.sleep(max(0.0, due - time.monotonic()))


class Delivery:
    """One answer on its way to one client."""

    def __init__(self, exchange: Exchange, request: Request, call: Call, action: Action, pace: Pace) -> None:
        self._exchange = exchange
        self._request = request
        self._call = call
        self._action = action
        self._pace = pace

    async def run(self, answer: Answer) -> None:
        """Send the answer, or what the action makes of it. Raises ConnectionError when the client is gone."""
        action = self._action
        await asyncio.sleep(action.delay_ms / 1000)
        if action.hang == "before":
            await _forever()
        if action.cut == "before":
            self._exchange.reset()
        elif action.status is not None:
            await self._status(action.status)
        elif self._request.streamed:
            await self._stream(answer)
        else:
            await self._whole(answer)

    async def _status(self, status: int) -> None:
        body = self._action.body
        if body is None:
            body = error_body(f"The trial model was told to answer {status}.", kind="server_error")
        await self._respond(status, body.encode() if isinstance(body, str) else encoded(body))

    async def _whole(self, answer: Answer) -> None:
        await self._pace.reach(len(answer.text) + len("".join(answer.reasoning)))
        if self._action.error_in_200:
            body = encoded(_overloaded())
        else:
            reasoning = "".join(answer.reasoning) or None
            body = encoded(
                answer.envelope.message(
                    answer.text, reasoning=reasoning, finish_reason=answer.finish_reason, usage=answer.usage
                )
            )
        if self._action.broken_frame:
            body = body[: len(body) // 2]
        await self._respond(200, body, completion_tokens=count_tokens(answer.text + "".join(answer.reasoning)))

    async def _respond(self, status: int, body: bytes, completion_tokens: int = 0) -> None:
        body = _with_invalid_byte(body)
        self._call.status = status
        await self._exchange.start(status, self._headers(JSON_TYPE, ("content-length", str(len(body)))))
        if self._action.hang == "headers":
            await _forever()
        if self._stops_in_the_middle:
            await self._send(body[: len(body) // 2])
            await self._stop()
            return
        if self._action.split_bytes:
            await self._send(body)
            body = b""
        self._call.completion_tokens = completion_tokens
        await self._exchange.finish(body)

    async def _stream(self, answer: Answer) -> None:
        self._call.status = 200
        await self._exchange.start(200, self._headers(STREAM_TYPE, ("cache-control", "no-cache")))
        if self._action.hang == "headers":
            await _forever()
        deltas: list[tuple[str, dict[str, str]]] = [("", {"role": "assistant", "content": ""})]
        deltas += [(piece, {"reasoning_content": piece}) for piece in answer.reasoning]
        deltas += [(piece, {"content": piece}) for piece in answer.pieces]
        said = 0
        for index, (piece, delta) in enumerate(deltas):
            if index == max(1, len(deltas) // 2):
                if self._stops_in_the_middle:
                    await self._stop()
                    return
                if self._action.broken_frame:
                    await self._send(self._frame(answer, delta)[:-12] + b"\n\n")
                    continue
            said += len(piece)
            await self._pace.reach(said)
            await self._send(self._frame(answer, delta))
            self._call.completion_tokens = -(-said // CHARACTERS_PER_TOKEN)
        ending = self._ending(answer)
        if self._action.split_bytes:
            await self._send(ending)
            ending = b""
        await self._exchange.finish(ending)

    def _ending(self, answer: Answer) -> bytes:
        frames = b""
        if self._action.error_in_200:
            frames = frame(_overloaded())
        else:
            if not self._action.no_finish:
                frames = self._frame(answer, {}, finish_reason=answer.finish_reason)
            if self._request.include_usage and answer.usage is not None:
                frames += frame(answer.envelope.usage_chunk(answer.usage))
        return frames if self._action.no_done else frames + DONE

    def _frame(self, answer: Answer, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        announces = self._request.include_usage and answer.usage is not None
        chunk = answer.envelope.chunk(dict(delta), finish_reason=finish_reason, announces_usage=announces)
        return _with_invalid_byte(frame(chunk))

    def _headers(self, *usual: tuple[str, str]) -> list[tuple[str, str]]:
        given = self._action.headers
        kept = [pair for pair in usual if pair[0] not in {name.lower() for name in given}]
        return [*kept, *given.items()]

    async def _send(self, data: bytes) -> None:
        if not self._action.split_bytes:
            await self._exchange.send(data)
            return
        for byte in data:
            await self._exchange.send(bytes([byte]))
            await asyncio.sleep(0)

    @property
    def _stops_in_the_middle(self) -> bool:
        return self._action.hang == "middle" or self._action.cut == "middle"

    async def _stop(self) -> None:
        if self._action.hang == "middle":
            await _forever()
        await asyncio.sleep(RESET_AFTER_SECONDS)
        self._exchange.reset()


def _with_invalid_byte(data: bytes) -> bytes:
    return data.replace(STAND_IN.encode(), b"\xff")


def _overloaded() -> dict[str, Any]:
    return error_body("The server is overloaded.", kind="server_error", code="overloaded")


async def _forever() -> None:
    """Wait until cancelled, which the client's leaving does."""
    await asyncio.Event().wait()
