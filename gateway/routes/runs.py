"""Runs: beginning one, the list, coming back to one, stopping one."""

from contextlib import AsyncExitStack, aclosing
from typing import Annotated, Literal

import grpc
from fastapi import APIRouter, Depends, Header, Query
from fastapi.security import APIKeyQuery
from lintello.engine.v1 import engine_pb2 as pb
from starlette.requests import Request
from starlette.responses import Response

from gateway.bodies import CleanRoute
from gateway.following import Following
from gateway.problems import Refused
from gateway.routes.asking import REFUSALS, ByKey, think_request
from gateway.routes.common import EVENTS, AsCaller, Cursor, Limit, ToServices, json_answer, page, refusals
from gateway.run_shapes import Question, RunBegun, Runs
from gateway.run_tokens import identify_reader
from gateway.shapes import ID_CHARACTERS
from gateway.sse import EventStream
from gateway.wire import listed_run_from_wire
from kit.errors import RemoteError
from kit.identity import Caller

router = APIRouter(prefix="/api/runs", tags=["runs"], route_class=CleanRoute)

FIRST_SECONDS = 10.0
"""How long an event is waited for before the answer begins without one. An engine that doesn't run a run itself takes
up to 8 to be sure that it hasn't come as far as its reader says."""
NUMBER = "^[0-9]{1,18}$"
DOCUMENTED_TOKEN = APIKeyQuery(
    name="token", scheme_name="RunToken", auto_error=False, description="A token for this one run, of its events_url."
)
NOTHING = {204: {"description": "The run has ended, and there is nothing after this event."}}
COMING_BACK = refusals(
    NOT_FOUND="there is no such run, or it is somebody else's.",
    SEQUENCE_AHEAD="the run has no event of this number yet.",
    EVENTS_EXPIRED="the run ended over an hour ago; its answer is in its conversation.",
)


@router.post("", response_model=RunBegun, status_code=202, responses=REFUSALS)
async def begin_run(
    question: Question, request: Request, caller: AsCaller, clients: ToServices, key: ByKey
) -> Response:
    """Have a question answered without waiting for it."""
    async with aclosing(await clients.think(think_request(question, request, key), caller)) as events:
        conversation_id = await _conversation_of(events)
    token = request.app.state.run_tokens.mint(events.run_id, caller)
    begun = {
        "run_id": events.run_id,
        "conversation_id": conversation_id,
        "events_url": f"/api/runs/{events.run_id}/events?token={token}",
    }
    return json_answer(begun, 202)


@router.get("", response_model=Runs)
async def list_runs(
    caller: AsCaller,
    clients: ToServices,
    limit: Limit = 20,
    cursor: Cursor = "",
    conversation_id: Annotated[str, Query(max_length=ID_CHARACTERS, description="Only this one's.")] = "",
    status: Annotated[Literal["running"] | None, Query(description="Only those that go on.")] = None,
) -> Response:
    """The caller's runs, the one that began last in front."""
    request = pb.ListRunsRequest(
        page_size=limit, page_token=cursor, conversation_id=conversation_id, active_only=status is not None
    )
    found = await clients.engine_peer.unary(clients.engine.ListRuns, request, caller)
    return page([listed_run_from_wire(run) for run in found.runs], found.next_page_token)


@router.get(
    "/{run_id}/events",
    responses=EVENTS | NOTHING | COMING_BACK,
    response_class=Response,
    dependencies=[Depends(DOCUMENTED_TOKEN)],
)
async def follow_run(
    run_id: str,
    request: Request,
    caller: Annotated[Caller, Depends(identify_reader)],
    clients: ToServices,
    seen: Annotated[
        str | None, Header(alias="Last-Event-ID", pattern=NUMBER, description="The last event seen; absent: none.")
    ] = None,
    last_event_id: Annotated[
        str | None, Query(pattern=NUMBER, description="The same, for those who send no headers.")
    ] = None,
) -> Response:
    """The events of a run after one that was seen, those to come included, as server-sent events."""
    state = request.app.state
    events = clients.watch(run_id, int(seen or last_event_id or 0), caller)
    async with AsyncExitStack() as unless_streamed:
        unless_streamed.push_async_callback(events.aclose)
        if await events.is_over(FIRST_SECONDS, state.closing):
            return Response(status_code=204)
        if state.closing.is_set():
            raise Refused("SHUTTING_DOWN")
        unless_streamed.pop_all()
    return EventStream(events, state.closing, state.metrics)


@router.delete("/{run_id}", status_code=204)
async def stop_run(run_id: str, caller: AsCaller, clients: ToServices) -> Response:
    """Stop a run; what it has said is kept. Stopping one that has ended is the same answer."""
    await clients.engine_peer.unary(clients.engine.StopRun, pb.StopRunRequest(run_id=run_id), caller)
    return Response(status_code=204)


async def _conversation_of(events: Following) -> str:
    """The conversation a run belongs to. It is said first, and again at the end, should the beginning be lost."""
    async for event in events:
        match event.WhichOneof("event"):
            case "run_started":
                return event.run_started.conversation_id
            case "done":
                return event.done.conversation_id
    raise RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "")
