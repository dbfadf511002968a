"""The chat model: aliases to names, one model after another when the first one fails, and what each call cost."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from weakref import WeakKeyDictionary

from kit.model import ChatModel, ChatRequest, End, Message, Meter, ModelError, Piece, Usage
from services.engine.adapters.aliases import Aliases
from services.engine.domain import Alias, ModelUsage
from services.engine.ports import ModelCall, ModelFailed, Reply

CASCADE: dict[Alias, tuple[Alias, ...]] = {
    "small": ("small",),
    "large": ("large", "small"),
    "codestral": ("codestral", "small"),
    "pixtral": ("pixtral", "small"),
}


class ChatModels:
    """The models of one provider (port Model)."""

    def __init__(self, client: ChatModel, aliases: Aliases) -> None:
        self._client = client
        self._aliases = aliases
        # Whoever keeps a call can ask what it used; when nobody does any more, it is forgotten.
        self._ways: WeakKeyDictionary[ModelCall, _Way] = WeakKeyDictionary()

    async def ask(self, call: ModelCall) -> Reply:
        """The whole answer of the first model that gives one. Raises ModelFailed."""
        candidates = await self._candidates(call.alias)
        way = self._ways[call] = _Way(self._aliases)
        failed = ModelFailed("unavailable", True)
        for alias, name in candidates:
            try:
                completion = await self._client.chat(_request(call, name), way.turn_to(alias, name))
            except ModelError as error:
                failed = ModelFailed(error.reason.value, error.retryable, way.spent())
                if not error.retryable:
                    break
                continue
            return way.reply(completion.text)
        raise failed

    async def stream(self, call: ModelCall) -> AsyncGenerator[str | Reply, None]:
        """Pieces of the first model that gives one, then a Reply. After a piece no other model is asked."""
        candidates = await self._candidates(call.alias)
        way = self._ways[call] = _Way(self._aliases)
        failed = ModelFailed("unavailable", True)
        for alias, name in candidates:
            pieces: list[str] = []
            try:
                async with aclosing(self._client.stream(_request(call, name), way.turn_to(alias, name))) as stream:
                    async for item in stream:
                        match item:
                            case Piece(text):
                                pieces.append(text)
                                yield text
                            case End():
                                yield way.reply("".join(pieces))
                                return
            except ModelError as error:
                failed = ModelFailed(error.reason.value, error.retryable, way.spent("".join(pieces)))
                if pieces or not error.retryable:
                    break
        raise failed

    def estimate(self, call: ModelCall, text: str) -> Reply:
        """What a call used that was cancelled or ran out of time, after it had given `text`; estimated."""
        way = self._ways.get(call)
        return Reply(text, ModelUsage(call.alias, 0, 0, True), 0.0) if way is None else way.reply(text)

    async def _candidates(self, alias: Alias) -> list[tuple[Alias, str]]:
        """The models to ask in order, none twice."""
        found: dict[str, Alias] = {}
        for candidate in CASCADE[alias]:
            found.setdefault(await self._aliases.name(candidate), candidate)
        return [(candidate, name) for name, candidate in found.items()]


class _Way:
    """The way of one call from model to model, and what it has used on it by now."""

    def __init__(self, aliases: Aliases) -> None:
        self._aliases = aliases
        self._asked: list[tuple[Alias, str, Meter]] = []

    def turn_to(self, alias: Alias, name: str) -> Meter:
        """Another model is asked."""
        self._asked.append((alias, name, meter := Meter()))
        return meter

    def reply(self, text: str) -> Reply:
        """What came of the call, however it ended."""
        (_, first, _), (_, name, last) = self._asked[0], self._asked[-1]
        used = last.used or Usage(0, 0, True)
        answer = ModelUsage(last.model or name, used.input_tokens, used.output_tokens, used.estimated)
        cost = self._aliases.price(self._asked[-1][0]).of(answer)
        failed: list[ModelUsage] = []
        for alias, asked, meter in self._asked:
            before = meter.failed if meter is last else [*meter.failed, *filter(None, [meter.used])]
            for use in before:
                failed.append(ModelUsage(asked, use.input_tokens, use.output_tokens, use.estimated))
                cost += self._aliases.price(alias).of(failed[-1])
        retries = sum(meter.tries - 1 for _, _, meter in self._asked)
        return Reply(text, answer, cost, first if first != name else "", retries, tuple(failed))

    def spent(self, text: str = "") -> Reply | None:
        """The same of a call that failed; None when there is nothing to tell."""
        reply = self.reply(text)
        if not text:
            # Nobody served it.
            reply = replace(reply, fallback_from="")
        used = reply.usage.input_tokens + reply.usage.output_tokens
        return reply if used or reply.failed or reply.retries else None


def _request(call: ModelCall, name: str) -> ChatRequest:
    turns = [Message(turn.role, turn.content) for turn in call.turns]
    return ChatRequest(name, [Message("system", call.system), *turns], json_schema=call.schema)
