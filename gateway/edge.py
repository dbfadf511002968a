"""The edge: what happens to every request before a route sees it, as plain ASGI layers."""

import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.identity import LOOPBACK
from gateway.languages import locale_of
from gateway.metrics import Metrics
from gateway.problems import Refused, problem
from kit import telemetry

BODY_BYTES = 1024 * 1024
BODY_TOO_LARGE = f"a body has at most {BODY_BYTES} bytes"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Observed:
    """Counts and logs each request by its route's template, and adds the headers every answer has."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and watch its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status, started = 500, began
        api = scope["path"].startswith("/api/")

        async def watch(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], time.perf_counter()
                headers = MutableHeaders(scope=message)
                headers.setdefault("Cache-Control", "no-store" if api else "no-cache")
                headers.update(SECURITY_HEADERS)
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            now = time.perf_counter()
            route = getattr(scope.get("route"), "path", "") or "unmatched"
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.answered(method, route, status, (started if started > began else now) - began)
            milliseconds = round((now - began) * 1000, 1)
            telemetry.log.info("request", method=method, route=route, status=status, ms=milliseconds)


class BodyLimit:
    """Refuses a body of more than 1 MiB: by its Content-Length before a byte is read, else once it is past it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, its body counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if length.isdecimal() and (len(length) > 10 or int(length) > BODY_BYTES):
            answer = problem("TOO_LARGE", locale_of(Request(scope)), BODY_TOO_LARGE)
            await answer(scope, receive, send)
            return
        size = 0

        async def counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > BODY_BYTES:
                raise Refused("TOO_LARGE", BODY_TOO_LARGE)
            return message

        await self._app(scope, counted, send)


class OwnPagesOnly:
    """In dev mode: only this machine's names in Host (a page elsewhere may point its name at us), and only our own
    pages in Origin (a page elsewhere may post to us)."""

    def __init__(self, app: ASGIApp, port: int) -> None:
        self._app = app
        self._hosts = frozenset(loopback_hosts(port))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on when it is ours, else answer 403."""
        if scope["type"] == "http" and not self._ours(Headers(scope=scope)):
            answer = problem("FORBIDDEN", locale_of(Request(scope)), "dev mode answers this machine's own pages only")
            await answer(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _ours(self, headers: Headers) -> bool:
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return False
        return all(origin.lower() == f"http://{hosts[0].lower()}" for origin in origins)


def loopback_hosts(port: int) -> Iterable[str]:
    """What Host may say for this machine's names at a port."""
    for name in LOOPBACK:
        shown = f"[{name}]" if ":" in name else name
        yield f"{shown}:{port}"
        if port == 80:
            yield shown
