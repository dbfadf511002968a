"""The gateway's HTTP interface as the command line uses it."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
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


PASSING = {429, 502, 503, 504}
"""Statuses of a gateway that may well answer in a moment."""


class StreamCut(Exception):
    """The stream ended, or fell silent, before its `done`; or nobody said whether the question has arrived."""


class NoAnswer(Failure):
    """There is nobody at the gateway's address: nothing has been sent."""


class Refusal(Failure):
    """The gateway refused; `passing` when it may not the next time."""

    def __init__(self, message: str, exit_code: int, *, passing: bool) -> None:
        super().__init__(message, exit_code)
        self.passing = passing


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

    async def ask(self, question: dict[str, Any], key: str) -> AsyncGenerator[tuple[str, Event], None]:
        """The events of one run, each with its JSON as received; the last is `done`.

        A question sent again with the same key is the same run. Raises Refusal, NoAnswer, StreamCut when the stream
        ends before `done`, and Failure for what can't be read.
        """
        headers = {"Idempotency-Key": key}
        async with aclosing(self._events("POST", "/api/chat/stream", headers, question)) as events:
            async for event in events:
                yield event

    async def watch(self, run_id: str, after: int) -> AsyncGenerator[tuple[str, Event], None]:
        """The events of a run after the one of this number, as `ask` gives them. Raises what `ask` does."""
        path, headers = f"/api/runs/{quote(run_id, safe='')}/events", {"Last-Event-ID": str(after)}
        async with aclosing(self._events("GET", path, headers)) as events:
            async for event in events:
                yield event

    async def stop(self, run_id: str) -> None:
        """Stop a run; one that has ended is no error. Raises Refusal, NoAnswer, StreamCut."""
        async with self._answer("DELETE", f"/api/runs/{quote(run_id, safe='')}"):
            pass

    async def tree(self, conversation_id: str, shape: str) -> str:
        """The JSON of a conversation's tree, `nested` or `flat`. Raises Failure."""
        path = f"/api/conversations/{quote(conversation_id, safe='')}/tree"
        try:
            async with self._answer("GET", path, params={"shape": shape}) as response:
                return (await response.aread()).decode("utf-8", "replace")
        except (StreamCut, httpx.TransportError):
            raise Failure(say("stack.no_answer", url=self._url)) from None

    async def _events(
        self, method: str, path: str, headers: dict[str, str], json: Any = None
    ) -> AsyncGenerator[tuple[str, Event], None]:
        parser = EventParser()
        async with self._answer(method, path, headers=headers, json=json) as response:
            try:
                async for chunk in response.aiter_bytes():
                    for data in parser.feed(chunk):
                        event = _read_event(data)
                        yield data, event
                        if event.get("type") == "done":
                            return
            except httpx.TransportError as error:
                raise StreamCut from error
            except ModelError:
                raise Failure(say("run.unreadable")) from None
        raise StreamCut

    @asynccontextmanager
    async def _answer(
        self,
        method: str,
        path: str,
        *,
        headers: dict[str, str] | None = None,
        json: Any = None,
        params: dict[str, str] | None = None,
    ) -> AsyncIterator[httpx.Response]:
        """The response of a successful request, its body still to be read. Raises Refusal, NoAnswer, StreamCut."""
        request = self._http.build_request(method, path, headers=headers, json=json, params=params)
        try:
            response = await self._http.send(request, stream=True)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            raise NoAnswer(say("stack.no_answer", url=self._url)) from None
        except httpx.TransportError as error:
            raise StreamCut from error
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
    except (json.JSONDecodeError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise Failure(say("run.unreadable"))
    return event


def _refusal(status: int, body: bytes) -> Refusal:
    """What a problem document (RFC 9457) says, in one line; a 400 that names a field is wrong usage."""
    try:
        problem = json.loads(body)
    except (ValueError, RecursionError):
        problem = None
    passing = status in PASSING
    if not isinstance(problem, dict):
        return Refusal(say("stack.refused", status=status), FAILED, passing=passing)
    errors = problem.get("errors")
    fields = [error for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    if status == 400 and fields:
        named = [f"{one_line(text(e.get('field')))}: {one_line(text(e.get('message')))}" for e in fields]
        return Refusal("; ".join(named), WRONG_USAGE, passing=False)
    # The title is in the user's language; the detail says more, in the words of the part that refused.
    said = dict.fromkeys(one_line(text(problem.get(name))) for name in ("title", "detail"))
    return Refusal(" : ".join(filter(None, said)) or say("stack.refused", status=status), FAILED, passing=passing)
