"""What the routes share: who asks, the clients, paging, and JSON answers."""

from typing import Annotated, Any

import orjson
from fastapi import Depends, Query
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from gateway.clients import Clients
from gateway.identity import identify
from gateway.shapes import Problem
from kit.identity import Caller

DOCUMENTED_BEARER = HTTPBearer(auto_error=False, description="A JWT. Not needed in dev mode.")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "A problem document (application/problem+json)"}
}


def clients_of(request: Request) -> Clients:
    """The channels to the services."""
    clients: Clients = request.app.state.clients
    return clients


AsCaller = Annotated[Caller, Depends(identify)]
ToServices = Annotated[Clients, Depends(clients_of)]
Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str, Query(max_length=2000, description="The next_cursor of the page before.")]


def json_answer(value: Any, status: int = 200) -> Response:
    """A value as JSON."""
    return Response(orjson.dumps(value), status, media_type="application/json")


def page(items: list[Any], next_cursor: str) -> Response:
    """A page of a list."""
    return json_answer({"items": items, "next_cursor": next_cursor or None})
