"""Asking: what the three routes that take a question share."""

from typing import Annotated

from fastapi import Depends, Header
from lintello.engine.v1 import engine_pb2 as pb
from starlette.requests import Request

from gateway.languages import locale_of
from gateway.routes.common import refusals
from gateway.run_shapes import MESSAGE_BYTES, Question
from gateway.wire import THINKING
from kit.errors import InvalidField, TooLarge
from kit.ids import new_id
from kit.text import byte_size

HEADER = "Idempotency-Key"
REFUSALS = refusals(
    RUN_IN_PROGRESS="an answer is in progress in this conversation.",
    IDEMPOTENCY_KEY_REUSED="the key came with another body before.",
    EVENTS_EXPIRED="the run of this key ended over an hour ago; its answer is in its conversation.",
)


async def idempotency_key(
    request: Request,
    key: Annotated[
        str | None,
        Header(
            alias=HEADER,
            min_length=1,
            max_length=200,
            pattern="^[ -~]*$",
            description="Names this question: sent again with the same key, it is the same run. Printable ASCII.",
        ),
    ] = None,
) -> str:
    """The client's key, else one of our own: then it is for us to ask again. Raises InvalidField."""
    if len(request.headers.getlist(HEADER)) > 1:
        raise InvalidField(HEADER, "one is enough")
    return key or new_id()


ByKey = Annotated[str, Depends(idempotency_key)]


def think_request(question: Question, request: Request, key: str) -> pb.ThinkRequest:
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
        idempotency_key=key,
    )
