"""The trial model's HTTP server: routes, start and stop, and `serving()` to run it inside a test."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from cli.trial.chat import Chat
from cli.trial.completion import encoded, error_body
from cli.trial.faults import Faults, InvalidRule
from cli.trial.ledger import Call, Ledger
from cli.trial.request import MODELS, BadRequest
from cli.trial.wire import JSON_TYPE, Connection, Exchange

DEFAULT_RATE = 40.0
BACKLOG = 1024


class TrialServer:
    """A running trial model. With `control`, it keeps a ledger of its calls and misbehaves on command."""

    __test__ = False  # pytest: the name isn't a test's

    def __init__(self, *, rate: float = DEFAULT_RATE, first_token_ms: float = 0, control: bool = False) -> None:
        self._ledger = Ledger(keep=control)
        self._faults = Faults()
        self._control = control
        self._chat = Chat(
            rate=rate, first_token_seconds=first_token_ms / 1000, ledger=self._ledger, faults=self._faults
        )
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._address = ("", 0)

    @property
    def base_url(self) -> str:
        """What an OpenAI client takes as its base URL."""
        host = f"[{self._address[0]}]" if ":" in self._address[0] else self._address[0]
        return f"http://{host}:{self._address[1]}/v1"

    @property
    def calls(self) -> Sequence[Call]:
        """The calls received so far, in order, those under way included."""
        return self._ledger.calls

    @property
    def connections(self) -> int:
        """How many client connections are open."""
        return len(self._connections)

    def set_faults(self, rules: list[dict[str, Any]]) -> None:
        """Misbehave by these rules from now on. Raises InvalidRule."""
        self._faults.replace(rules)

    def reset(self) -> None:
        """Behave again and forget all calls."""
        self._faults.clear()
        self._ledger.clear()

    async def ended(self, count: int, *, within: float = 5.0) -> list[Call]:
        """The calls that are over, once there are `count`. Raises TimeoutError after `within` seconds."""
        async with asyncio.timeout(within):
            return await self._ledger.ended(count)

    async def start(self, host: str, port: int) -> None:
        """Listen; port 0 takes a free one. Raises OSError when the address can't be had."""
        self._server = await asyncio.start_server(self._accept, host, port, backlog=BACKLOG)
        name = self._server.sockets[0].getsockname()
        self._address = (name[0], name[1])

    async def stop(self) -> None:
        """Close the listening socket and every connection."""
        if self._server is not None:
            self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.ensure_future(Connection(reader, writer, self._handle).run())
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _handle(self, exchange: Exchange) -> None:
        route = f"{exchange.method} {exchange.path}"
        try:
            match route:
                case "POST /v1/chat/completions":
                    await self._chat.answer(exchange)
                case "GET /v1/models":
                    listed = [{"id": name, "object": "model", "created": 0, "owned_by": "lintello"} for name in MODELS]
                    await _json(exchange, 200, {"object": "list", "data": listed})
                case "GET /healthz":
                    await _json(exchange, 200, {"status": "ok"})
                case _ if self._control and exchange.path.startswith("/control/"):
                    await self._handle_control(exchange, route)
                case _:
                    await _json(exchange, 404, error_body("There is nothing at this address.", code="not_found"))
        except BadRequest as refused:
            await _json(exchange, refused.status, refused.body)

    async def _handle_control(self, exchange: Exchange, route: str) -> None:
        match route:
            case "PUT /control/faults":
                try:
                    self._faults.replace(json.loads(exchange.body))
                except (json.JSONDecodeError, UnicodeDecodeError, InvalidRule) as refused:
                    raise BadRequest(400, error_body(str(refused), code="invalid_rule")) from refused
                await _json(exchange, 200, {})
            case "DELETE /control/faults":
                self._faults.clear()
                await _json(exchange, 200, {})
            case "GET /control/calls":
                await _json(exchange, 200, [call.as_json() for call in self._ledger.calls])
            case "DELETE /control/calls":
                self._ledger.clear()
                await _json(exchange, 200, {})
            case _:
                await _json(exchange, 404, error_body("There is nothing at this address.", code="not_found"))


async def _json(exchange: Exchange, status: int, value: object) -> None:
    await exchange.respond(status, encoded(value), [JSON_TYPE])


@asynccontextmanager
async def serving(
    *, host: str = "127.0.0.1", port: int = 0, rate: float = 0, first_token_ms: float = 0
) -> AsyncIterator[TrialServer]:
    """A trial model in this process, under control, without delay unless a rate is given; stopped on the way out."""
    server = TrialServer(rate=rate, first_token_ms=first_token_ms, control=True)
    await server.start(host, port)
    try:
        yield server
    finally:
        await server.stop()
