"""The chat-completions format: requests, usage, and what a server says it doesn't know."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kit.model import ChatRequest, Completion, Message, Usage, estimate_tokens
from kit.model.answer import StreamedAnswer, read_completion
from kit.model.errors import ModelError
from kit.model.tokens import TokenRates
from kit.model.wire import request_body, text_of, unknown_fields, usage_of

REQUEST = ChatRequest("small", [Message("system", "Tu aides."), Message("user", "Bonjour")])


def test_a_plain_request_holds_only_what_was_asked() -> None:
    assert request_body(REQUEST, stream=False, without=()) == {
        "model": "small",
        "messages": [{"role": "system", "content": "Tu aides."}, {"role": "user", "content": "Bonjour"}],
    }


def test_a_full_request_holds_everything() -> None:
    schema = {"type": "object"}
    request = ChatRequest("small", [], max_tokens=9, temperature=0.0, json_schema=schema, schema_name="steps")
    assert request_body(request, stream=True, without=()) == {
        "model": "small",
        "messages": [],
        "max_tokens": 9,
        "temperature": 0.0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "steps", "schema": schema, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
    }


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ('{"error": {"message": "Unrecognized request argument supplied: stream_options"}}', {"stream_options"}),
        ('{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}', {"stream_options"}),
        ('{"error": "property \'stream_options\' is unsupported"}', {"stream_options"}),
        ('{"error": "This model does not support response format `json_schema`"}', {"response_format"}),
        ('{"error": "Invalid parameter: \'response_format\' is not supported with this model"}', {"response_format"}),
        ('{"error": "unknown fields: stream_options, response_format"}', {"stream_options", "response_format"}),
        ('{"error": "Invalid schema for response_format \'answer\': unknown keyword"}', set()),
        ('{"error": "the prompt is too long"}', set()),
        ('{"error": "unknown field max_tokens"}', set()),
        ("", set()),
    ],
)
def test_an_unknown_field_is_found_in_a_refusal(answer: str, fields: set[str]) -> None:
    body = {"stream_options": {}, "response_format": {}, "max_tokens": 3}
    assert unknown_fields(answer, body) == fields


def test_a_field_that_was_not_sent_is_not_found() -> None:
    assert unknown_fields("unknown field stream_options", {"model": "small"}) == set()


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"prompt_tokens": 12, "completion_tokens": 5}, Usage(12, 5, estimated=False)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(0, 0, estimated=False)),
        ({"prompt_tokens": 12}, Usage(12, 10, estimated=True)),
        ({"prompt_tokens": -1, "completion_tokens": True}, Usage(13, 10, estimated=True)),
        ({"prompt_tokens": "12", "completion_tokens": None}, Usage(13, 10, estimated=True)),
        (None, Usage(13, 10, estimated=True)),
        ("rien", Usage(13, 10, estimated=True)),
    ],
)
def test_usage_is_the_servers_or_estimated(reported: object, usage: Usage) -> None:
    assert usage_of(reported, REQUEST, 33, TokenRates()) == usage


def test_an_estimate_is_a_token_for_every_3_3_characters() -> None:
    assert [estimate_tokens("a" * length) for length in (0, 1, 33, 34)] == [0, 1, 10, 11]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Oui", "Oui"),
        ([{"type": "thinking", "thinking": [{"type": "text", "text": "hum"}]}, {"type": "text", "text": "Oui"}], "Oui"),
        ([{"type": "text", "text": "O"}, {"type": "text", "text": "ui"}], "Oui"),
        ([{"type": "text"}, 3, None], ""),
        (None, ""),
        (3, ""),
    ],
)
def test_the_text_of_content_is_its_text_parts(content: object, text: str) -> None:
    assert text_of({"content": content}) == text


NAMES = ["choices", "message", "delta", "content", "usage", "error", "text", "type", "model", "finish_reason", "object"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
    max_leaves=15,
)


@given(json_values)
def test_no_json_breaks_the_reading_of_a_completion(value: Any) -> None:
    try:
        answer = read_completion(json.dumps(value).encode(), REQUEST, TokenRates())
    except ModelError:
        return
    assert isinstance(answer, Completion)
    assert answer.text.strip()


@given(st.lists(json_values, max_size=4))
def test_no_json_breaks_the_reading_of_a_stream(values: list[Any]) -> None:
    answer = StreamedAnswer(REQUEST, TokenRates())
    try:
        shown = "".join([answer.feed(json.dumps(value)) for value in values])
        rest, _ = answer.close()
    except ModelError:
        return
    assert (shown + rest).strip()


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"[" * 100_000, b'{"choices": []}', b"\xff"])
def test_a_body_without_an_answer_is_refused(body: bytes) -> None:
    with pytest.raises(ModelError):
        read_completion(body, REQUEST, TokenRates())


def test_reprs_hold_no_content() -> None:
    request = ChatRequest("small", [Message("user", "SECRET")], json_schema={"title": "SECRET"})
    shown = [request, *request.messages, Completion("SECRET", Usage(1, 1, estimated=False), "small")]
    assert "SECRET" not in repr(shown)
