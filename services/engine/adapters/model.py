"""The chat model: aliases to names, one model after another when the first one fails, and what each call cost."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from kit.model import ChatModel, ChatRequest, End, Message, ModelError, Piece, Usage, estimate_tokens
from services.engine import context
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

    async def ask(self, call: ModelCall) -> Reply:
        """The whole answer of the first model that gives one. Raises ModelFailed."""
        first, failure = "", ModelFailed("unavailable", True)
        for alias, name in await self._candidates(call.alias):
            first = first or name
            try:
                completion = await self._client.chat(_request(call, name))
            except ModelError as error:
                failure = _failed(error, name)
                if not error.retryable:
                    break
                continue
            return self._reply(alias, name, first, completion.text, completion.usage, completion.model)
        raise failure

    async def stream(self, call: ModelCall) -> AsyncGenerator[str | Reply, None]:
        """Pieces of the first model that gives one, then a Reply. After a piece no other model is asked."""
        first, failure = "", ModelFailed("unavailable", True)
        for alias, name in await self._candidates(call.alias):
            first = first or name
            pieces: list[str] = []
            try:
                async with aclosing(self._client.stream(_request(call, name))) as stream:
                    async for item in stream:
                        match item:
                            case Piece(text):
                                pieces.append(text)
                                yield text
                            case End(usage, model, _):
                                yield self._reply(alias, name, first, "".join(pieces), usage, model)
                                return
            except ModelError as error:
                failure = _failed(error, name)
                if pieces or not error.retryable:
                    break
        raise failure

    def estimate(self, call: ModelCall, text: str) -> Reply:
        """What a call that was cut short has used by now, estimated."""
        usage = Usage(context.size(call.system, call.turns), estimate_tokens(text), True)
        return self._reply(call.alias, call.alias, call.alias, text, usage, call.alias)

    async def _candidates(self, alias: Alias) -> list[tuple[Alias, str]]:
        """The models to ask in order, none twice."""
        found: dict[str, Alias] = {}
        for candidate in CASCADE[alias]:
            found.setdefault(await self._aliases.name(candidate), candidate)
        return [(candidate, name) for name, candidate in found.items()]

    def _reply(self, alias: Alias, name: str, first: str, text: str, usage: Usage, served: str) -> Reply:
        used = ModelUsage(served or name, usage.input_tokens, usage.output_tokens, usage.estimated)
        return Reply(text, used, self._aliases.price(alias).of(used), first if first != name else "")


def _request(call: ModelCall, name: str) -> ChatRequest:
    turns = [Message(turn.role, turn.content) for turn in call.turns]
    return ChatRequest(name, [Message("system", call.system), *turns], json_schema=call.schema)


def _failed(error: ModelError, name: str) -> ModelFailed:
    used = error.usage
    usage = ModelUsage(name, used.input_tokens, used.output_tokens, used.estimated) if used else None
    return ModelFailed(error.reason.value, error.retryable, usage)
