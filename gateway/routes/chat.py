"""A question: answered as a stream of events, or whole."""

import asyncio
from contextlib import aclosing

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from gateway.answer import AnswerBuilder
from gateway.bodies import CleanRoute
from gateway.events import event_from_wire
from gateway.following import Following
from gateway.languages import locale_of
from gateway.problems import problem, remote_problem
from gateway.routes.asking import REFUSALS, ByKey, think_request
from gateway.routes.common import EVENTS, AsCaller, ToServices, json_answer, refusals
from gateway.run_shapes import Answer, Question
from gateway.sse import EventStream, until_set
from kit.errors import RemoteError

router = APIRouter(prefix="/api/chat", tags=["chat"], route_class=CleanRoute)

CANT_BE_HAD = refusals(
    UNAVAILABLE="the answer can't be had now. With a `run_id` the run may go on, and its events can be read.",
    SHUTTING_DOWN="the same, while this server stops.",
)


@router.post("/stream", responses=EVENTS | REFUSALS, response_class=Response)
async def stream_answer(
    question: Question, request: Request, caller: AsCaller, clients: ToServices, key: ByKey
) -> Response:
    """Answer a question as server-sent events. Going away doesn't stop the run."""
    events = await clients.think(think_request(question, request, key), caller)
    state = request.app.state
    return EventStream(events, state.closing, state.metrics)


@router.post("", response_model=Answer, responses=REFUSALS | CANT_BE_HAD)
async def answer_whole(
    question: Question, request: Request, caller: AsCaller, clients: ToServices, key: ByKey
) -> Response:
    """Answer a question in one piece. Going away doesn't stop the run."""
    events = await clients.think(think_request(question, request, key), caller)
    locale, run_id, closing = locale_of(request), events.run_id, request.app.state.closing
    try:
        answer = await _gather(events, closing)
    except RemoteError as error:
        return remote_problem(error, locale, run_id=run_id)
    if closing.is_set() and not answer.is_done:
        return problem("SHUTTING_DOWN", locale, run_id=run_id)
    if answer.failure is not None:
        return problem(answer.failure, locale, run_id=run_id)
    return json_answer(answer.as_json())


async def _gather(events: Following, closing: asyncio.Event) -> AnswerBuilder:
    """The whole run, or what there was of it when `closing` was set. Raises RemoteError."""
    answer, failed = AnswerBuilder(), None
    async with aclosing(events), until_set(closing):
        try:
            async for event in events:
                answer.add(event_from_wire(event))
        except RemoteError as error:
            # Out of the block it comes as it is, not in a group.
            failed = error
    if failed is not None:
        raise failed
    return answer
