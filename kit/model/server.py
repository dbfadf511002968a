"""One HTTP exchange with a chat server: asking, statuses, bodies. No retries, and no time limits of its own."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx

from kit.model.chat import ChatRequest
from kit.model.errors import ModelError, ModelErrorReason
from kit.model.retry import parse_retry_after, reason_of
from kit.model.transport import CONNECTION_ERRORS, cause_of, open_client
from kit.model.wire import request_body, unknown_fields

_MAX_BODY_BYTES = 16 * 1024 * 1024
_MAX_REFUSAL_BYTES = 64 * 1024
# After the last event the end of the body follows at once; reading it keeps the connection for the next call.
_LINGER = 0.25


class ChatServer:
    """The server at a base URL. Remembers which optional fields it refused, and asks without them from then on."""

    def __init__(self, base_url: str, api_key: str | None, clock: Callable[[], float]) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = open_client(self.base_url, api_key)
        self._clock = clock
        # By model: some servers know schemas for some of their models only.
        self._unknown: defaultdict[str, set[str]] = defaultdict(set)

    async def ask(self, request: ChatRequest, *, stream: bool) -> httpx.Response:
        """The response to a chat request, its body unread, once its headers say success; else raises ModelError."""
        unknown = self._unknown[request.model]
        while True:
            body = request_body(request, stream=stream, without=unknown)
            response = await self._send("POST", "/chat/completions", body)
            if response.is_success:
                return response
            named = unknown_fields(await _refusal(response), body)
            if not named:
                raise self._status_error(response)
            unknown |= named

    async def list_models(self) -> httpx.Response:
        """The response that lists the models, its body unread; raises ModelError on a status other than success."""
        response = await self._send("GET", "/models")
        if response.is_success:
            return response
        await response.aclose()
        raise self._status_error(response)

    async def aclose(self) -> None:
        """Closes all connections."""
        await self._http.aclose()

    async def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        content = None if body is None else json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        headers = {"Content-Type": "application/json"} if content else {}
        request = self._http.build_request(method, self.base_url + path, content=content, headers=headers)
        return await self._http.send(request, stream=True)

    def _status_error(self, response: httpx.Response) -> ModelError:
        status = response.status_code
        retry_after = parse_retry_after(response.headers.get("Retry-After"), self._clock())
        message = f"the model server answered {status}"
        return ModelError(reason_of(status), message, status=status, retry_after=retry_after)


async def read_body(response: httpx.Response, limit: int = _MAX_BODY_BYTES) -> bytes:
    """The whole body of a response, which is closed. Raises ModelError (malformed) past `limit` bytes."""
    body = bytearray()
    try:
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > limit:
                raise ModelError(
                    ModelErrorReason.MALFORMED, "the model server's answer is too long", status=response.status_code
                )
    finally:
        await response.aclose()
    return bytes(body)


async def read_to_end(chunks: AsyncIterator[bytes]) -> None:
    """Reads what little may follow the last event of a stream, for a moment only."""
    try:
        async with asyncio.timeout(_LINGER):
            async for _ in chunks:
                pass
    except (TimeoutError, *CONNECTION_ERRORS):
        return


async def _refusal(response: httpx.Response) -> str:
    """What the server says of a request it finds wrong; "" for any other status. The response is closed."""
    if response.status_code not in (400, 422):
        await response.aclose()
        return ""
    return (await read_body(response, _MAX_REFUSAL_BYTES)).decode("utf-8", "replace")


@contextmanager
def connection_failures() -> Generator[None, None, None]:
    """Turns a time limit reached and a connection that fails into ModelError."""
    try:
        yield
    except TimeoutError:
        raise ModelError(ModelErrorReason.TIMEOUT, "the model server did not answer in time") from None
    except CONNECTION_ERRORS as error:
        message = f"no connection to the model server ({cause_of(error)})"
        raise ModelError(ModelErrorReason.UNAVAILABLE, message) from None
