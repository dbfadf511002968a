"""What the routes share: who asks, the clients, paging, and JSON answers."""

from typing import Annotated, Any

import orjson
from fastapi import Depends, Query
from fastapi.security import HTTPBearer
from starlette.requests import Request
from starlette.responses import Response

from gateway.clients import Clients
from gateway.identity import identify
from gateway.problems import REASONS
from gateway.shapes import Problem
from kit.identity import Caller

DOCUMENTED_BEARER = HTTPBearer(auto_error=False, description="A JWT. Not needed in dev mode.")
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "default": {"model": Problem, "description": "A problem document (application/problem+json)"}
}

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Each event is one `id: <number>` line and one `data: <JSON>` line; a comment every 15 s. "
        "The last event is `done`, once, also after an `error`. A stream that ends without it was cut: the run goes "
        "on, and `GET /api/runs/{run_id}/events` goes on with it.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def refusals(**described: str) -> dict[int | str, dict[str, Any]]:
    """Refusals that a route has of its own, for its `responses`: reasons of `gateway.problems` and when they come."""
    found: dict[int | str, dict[str, Any]] = {}
    for reason, when in described.items():
        status = REASONS[reason].status
        before = f"{found[status]['description']} " if status in found else ""
        found[status] = {"model": Problem, "description": f"{before}`{reason}`: {when}"}
    return found


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
