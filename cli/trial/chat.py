"""`POST /v1/chat/completions`: a call read, entered in the ledger, and answered — well, or as badly as a rule says."""

import asyncio
from typing import Any

from cli.trial.completion import (
    CHARACTERS_PER_TOKEN,
    Envelope,
    count_prompt_tokens,
    count_tokens,
    pieces_of,
    usage_of,
)
from cli.trial.delivery import STAND_IN, Answer, Delivery, Pace
from cli.trial.faults import Action, Faults
from cli.trial.ledger import Call, Ledger
from cli.trial.request import Request, parse
from cli.trial.roles import asked
from cli.trial.wire import Exchange
from cli.trial.writer import write


class Chat:
    """The chat completion endpoint."""

    def __init__(self, *, rate: float, first_token_seconds: float, ledger: Ledger, faults: Faults) -> None:
        self._rate = rate
        self._first_token_seconds = first_token_seconds
        self._ledger = ledger
        self._faults = faults

    async def answer(self, exchange: Exchange) -> None:
        """Answer one call. Cancelled when the client leaves, which is then on record."""
        request = parse(exchange.body)
        ask = asked(request.messages, request.response_format)
        call = Call(
            role=ask.role,
            model=request.model,
            streamed=request.streamed,
            prompt_tokens=count_prompt_tokens(request.messages),
            header_names=exchange.header_names,
            client_port=exchange.client_port,
            body=request.body,
        )
        self._ledger.open(call)
        action = self._faults.action_for(ask.role, request.streamed)
        text = action.text if action.text is not None else None if action.chunks else write(ask)
        delivery = Delivery(exchange, request, call, action, self._pace(action))
        try:
            await delivery.run(_answer(request, action, call, text))
        except (asyncio.CancelledError, ConnectionError):
            call.leave()
            raise
        finally:
            self._ledger.close(call)

    def _pace(self, action: Action) -> Pace:
        return Pace(self._rate if action.rate is None else action.rate, self._first_token_seconds)


def _answer(request: Request, action: Action, call: Call, text: str | None) -> Answer:
    finish_reason = "stop"
    pieces = list(action.chunks) if text is None and action.chunks else pieces_of(text or "")
    prescribed = action.text is not None or action.chunks is not None
    if not prescribed and request.max_tokens is not None and count_tokens(text or "") > request.max_tokens:
        pieces = pieces_of((text or "")[: request.max_tokens * CHARACTERS_PER_TOKEN])
        finish_reason = "length"
    if action.error_in_200 and not prescribed:
        pieces = []
    if action.invalid_byte and pieces:
        middle = pieces[len(pieces) // 2]
        pieces[len(pieces) // 2] = middle[: len(middle) // 2] + STAND_IN + middle[len(middle) // 2 :]
    reasoning = pieces_of(action.reasoning or "")
    usage: dict[str, Any] | None = action.usage
    if not action.overrides_usage:
        usage = usage_of(call.prompt_tokens, count_tokens("".join(pieces) + "".join(reasoning)))
    return Answer(pieces, reasoning, finish_reason, usage, Envelope(request.model))
