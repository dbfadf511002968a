"""A question: answered as a stream of events, or whole."""

from contextlib import aclosing
from typing import Any

from fastapi import APIRouter
from lintello.engine.v1 import engine_pb2 as pb
from starlette.requests import Request
from starlette.responses import Response

from gateway.answer import AnswerBuilder
from gateway.bodies import CleanRoute
from gateway.events import event_from_wire
from gateway.languages import locale_of
from gateway.problems import failed_run
from gateway.routes.common import AsCaller, ToServices, json_answer
from gateway.shapes import MESSAGE_BYTES, Answer, Question
from gateway.sse import EventStream
from gateway.wire import THINKING
from kit.errors import TooLarge
from kit.text import byte_size

router = APIRouter(prefix="/api/chat", tags=["chat"], route_class=CleanRoute)

STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Each event is one `id: <seq>` line and one `data: <JSON>` line; a comment every 15 s. "
        "The last event is `done`, once, also after an `error`.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


@router.post("/stream", responses=STREAM, response_class=Response)
async def stream_answer(question: Question, request: Request, caller: AsCaller, clients: ToServices) -> Response:
    """Answer a question as server-sent events. Going away doesn't stop the run."""
    first, events = await clients.think(think_request(question, request), caller)
    state = request.app.state
    return EventStream(first, events, locale_of(request), state.closing, state.metrics)


@router.post("", response_model=Answer)
async def answer_whole(question: Question, request: Request, caller: AsCaller, clients: ToServices) -> Response:
    """Answer a question in one piece."""
    first, events = await clients.think(think_request(question, request), caller)
    answer = AnswerBuilder()
    answer.add(event_from_wire(first))
    async with aclosing(events):
        async for event in events:
            answer.add(event_from_wire(event))
    if answer.is_empty:
        return failed_run(answer.error_code, locale_of(request))
    return json_answer(answer.as_json())


def think_request(question: Question, request: Request) -> pb.ThinkRequest:
    """The question for the engine. Raises TooLarge."""
    request.state.locale = question.locale
    if byte_size(question.message) > MESSAGE_BYTES:
        raise TooLarge("message", f"at most {MESSAGE_BYTES} bytes")
    return pb.ThinkRequest(
        message=question.message,
        conversation_id=question.conversation_id or "",
        parent_node_id=question.parent_node_id,
        mode=question.mode or "",
        thinking=THINKING[question.thinking],
        model=question.model or "",
        locale=locale_of(request),
        on_disconnect=pb.ON_DISCONNECT_CONTINUE,
    )
