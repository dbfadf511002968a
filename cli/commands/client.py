"""The gateway's HTTP interface as the command line uses it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self
from urllib.parse import quote

import httpx

from cli.commands.failure import FAILED, WRONG_USAGE, Failure
from cli.screen.format import one_line, text
from cli.screen.progress import Event
from cli.texts import locale, say
from kit.model.errors import ModelError
from kit.model.sse import EventParser

CONNECT_SECONDS = 5
SILENCE_SECONDS = 60
"""The gateway sends at least a comment every 15 s; after four times that nobody is there any more."""


class StreamCut(Exception):
    """The stream ended, or fell silent, before its `done`."""


class Gateway:
    """One gateway. `async with` closes its connections."""

    def __init__(self, url: str, token: str | None = None) -> None:
        headers = {"Accept-Language": locale()}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        self._url = url
        self._http = httpx.AsyncClient(
            base_url=url,
            headers=headers,
            timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
            # The stack is where the URL says: a proxy meant for the outside has no part in this.
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def ask(self, question: dict[str, Any]) -> AsyncGenerator[tuple[str, Event], None]:
        """The events of one run, each with its JSON as received; the last is `done`.

        Raises Failure when the question is refused, StreamCut when the stream ends before `done`.
        """
        parser = EventParser()
        async with self._answer("POST", "/api/chat/stream", json=question) as response:
            try:
                async for chunk in response.aiter_bytes():
                    for data in parser.feed(chunk):
                        event = _read_event(data)
                        yield data, event
                        if event.get("type") == "done":
                            return
            except (httpx.TransportError, ModelError) as error:
                raise StreamCut from error
        raise StreamCut

    async def stop(self, run_id: str) -> None:
        """Stop a run; one that has ended is no error. Raises Failure."""
        async with self._answer("DELETE", f"/api/runs/{quote(run_id, safe='')}"):
            pass

    async def tree(self, conversation_id: str, shape: str) -> str:
        """The JSON of a conversation's tree, `nested` or `flat`. Raises Failure."""
        path = f"/api/conversations/{quote(conversation_id, safe='')}/tree"
        async with self._answer("GET", path, params={"shape": shape}) as response:
            try:
                return (await response.aread()).decode("utf-8", "replace")
            except httpx.TransportError:
                raise Failure(say("stack.no_answer", url=self._url)) from None

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, *, json: Any = None, params: dict[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """The response of a successful request, its body still to be read. Raises Failure."""
        request = self._http.build_request(method, path, json=json, params=params)
        try:
            response = await self._http.send(request, stream=True)
        except httpx.TransportError:
            raise Failure(say("stack.no_answer", url=self._url)) from None
        try:
            if not response.is_success:
                try:
                    body = await response.aread()
                except httpx.TransportError:
                    body = b""
                raise _refusal(response.status_code, body)
            yield response
        finally:
            await response.aclose()


def _read_event(data: str) -> Event:
    try:
        event = json.loads(data)
    except (json.JSONDecodeError, RecursionError) as error:
        raise StreamCut from error
    if not isinstance(event, dict):
        raise StreamCut
    return event


def _refusal(status: int, body: bytes) -> Failure:
    """What a problem document (RFC 9457) says, in one line; a 400 that names a field is wrong usage."""
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        problem = None
    if not isinstance(problem, dict):
        return Failure(say("stack.refused", status=status))
    errors = problem.get("errors")
    fields = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    if status == 400 and fields:
        named = [f"{one_line(text(e.get('field')))}: {one_line(text(e.get('message')))}" for e in fields]
        return Failure("; ".join(named), WRONG_USAGE)
    # The title is in the user's language; the detail says more, in the words of the part that refused.
    said = dict.fromkeys(one_line(text(problem.get(name))) for name in ("title", "detail"))
    return Failure(" : ".join(filter(None, said)) or say("stack.refused", status=status), FAILED)
