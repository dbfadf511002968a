"""Bodies: JSON read once, strictly, and every text in it made safe before anything looks at it."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from gateway.problems import Refused
from kit.text import clean

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CleanRequest(Request):
    """A request whose JSON is UTF-8, well-formed and clean."""

    async def json(self) -> Any:
        """The body's value. Raises Refused."""
        body = await self.body()
        try:
            return json.loads(body.decode("utf-8"), object_pairs_hook=_clean_pairs, parse_constant=_refuse_constant)
        except UnicodeDecodeError:
            raise Refused("INVALID_ARGUMENT", "the body isn't UTF-8") from None
        except (ValueError, RecursionError):
            raise Refused("INVALID_ARGUMENT", "the body isn't JSON") from None


class CleanRoute(APIRoute):
    """A route whose body is read by CleanRequest; a body that doesn't call itself JSON is refused."""

    def get_route_handler(self) -> Handler:
        """The framework's handler around a CleanRequest."""
        handle = super().get_route_handler()

        async def clean_handle(request: Request) -> Response:
            if request.method in ("POST", "PATCH") and not _is_json(request.headers.get("content-type", "")):
                raise Refused("UNSUPPORTED_MEDIA_TYPE", "Content-Type: application/json")
            return await handle(CleanRequest(request.scope, request.receive))

        return clean_handle


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


def _clean_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {clean(name): clean(value) if isinstance(value, str) else value for name, value in pairs}


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("not a JSON number")
