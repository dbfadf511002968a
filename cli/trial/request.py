"""Reading the body of a chat completion call, and refusing it the way OpenAI-compatible servers do."""

import json
from dataclasses import dataclass
from typing import Any, Final

from cli.trial.completion import error_body

MODELS: Final = (
    "lintello-essai-small",
    "lintello-essai-large",
    "lintello-essai-codestral",
    "lintello-essai-pixtral",
)


class BadRequest(Exception):
    """A call that OpenAI-compatible servers refuse: a status and an error body without the caller's content."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(body["error"]["message"])
        self.status = status
        self.body = body


@dataclass(frozen=True)
class Request:
    """A call that can be answered."""

    model: str
    messages: list[dict[str, Any]]
    streamed: bool
    include_usage: bool
    max_tokens: int | None
    response_format: object
    body: dict[str, Any]


def parse(body: bytes) -> Request:
    """Read a call's body. Raises BadRequest with what OpenAI-compatible servers answer."""
    try:
        value = json.loads(body)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as unread:
        raise BadRequest(400, error_body("We could not parse the JSON body of your request.")) from unread
    if not isinstance(value, dict):
        raise BadRequest(400, error_body("The body of your request must be a JSON object."))
    model, messages = value.get("model"), value.get("messages")
    if not isinstance(model, str):
        raise BadRequest(400, error_body("You must provide a model parameter.", param="model"))
    if not isinstance(messages, list) or not messages or not all(isinstance(each, dict) for each in messages):
        raise BadRequest(400, error_body("'messages' must be a list of at least one message.", param="messages"))
    if model not in MODELS:
        message = f"This model does not exist here; there are {', '.join(MODELS)}."
        raise BadRequest(404, error_body(message, param="model", code="model_not_found"))
    limit = value.get("max_completion_tokens", value.get("max_tokens"))
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise BadRequest(400, error_body("'max_tokens' must be a whole number from 1.", param="max_tokens"))
    options = value.get("stream_options")
    return Request(
        model=model,
        messages=messages,
        streamed=value.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
        max_tokens=limit,
        response_format=value.get("response_format"),
        body=value,
    )
