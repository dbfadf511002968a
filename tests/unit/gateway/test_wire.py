"""From the wire of the services to JSON."""

from typing import get_args

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import node_pb2, run_pb2
from lintello.engine.v1 import engine_pb2 as engine
from lintello.treestore.v1 import treestore_pb2 as treestore

from gateway import run_shapes, shapes
from gateway.events import event_from_wire
from gateway.wire import (
    conversation_from_wire,
    listed_run_from_wire,
    message_from_wire,
    mode_from_wire,
    node_from_wire,
    time_from_wire,
)


def test_times_are_rfc_3339_in_utc_with_a_z() -> None:
    assert time_from_wire(Timestamp(seconds=0, nanos=120_000_000)) == "1970-01-01T00:00:00.120Z"


def test_a_score_of_zero_is_not_an_absent_score() -> None:
    assert node_from_wire(node_pb2.Node(score=0.0))["score"] == 0.0
    assert node_from_wire(node_pb2.Node())["score"] is None


def test_tokens_are_the_sum_of_those_read_and_written() -> None:
    assert node_from_wire(node_pb2.Node(input_tokens=3, output_tokens=4))["tokens"] == 7


def test_a_failure_is_there_only_where_there_was_one() -> None:
    assert "failure" not in node_from_wire(node_pb2.Node())
    assert node_from_wire(node_pb2.Node(failure="timeout"))["failure"] == "timeout"


def test_roles_and_statuses_are_the_lower_case_names() -> None:
    node = node_from_wire(node_pb2.Node(role=node_pb2.NODE_ROLE_SYNTHESIZE, status=node_pb2.NODE_STATUS_SELECTED))
    assert (node["role"], node["status"]) == ("synthesize", "selected")


def test_a_conversation_without_a_mode_says_null() -> None:
    conversation = conversation_from_wire(treestore.Conversation(conversation_id="c"))
    assert (conversation["mode"], conversation["mode_source"], conversation["active_node_id"]) == (None, None, None)


def test_every_field_of_a_conversation_is_in_the_document() -> None:
    assert set(conversation_from_wire(treestore.Conversation())) == set(shapes.Conversation.model_fields)


def test_every_field_of_a_message_is_in_the_document() -> None:
    message = message_from_wire(treestore.Message(role=treestore.ROLE_USER), [])
    assert set(message) == set(shapes.Message.model_fields)


def test_every_field_of_a_node_is_in_the_document() -> None:
    node = node_from_wire(node_pb2.Node(failure="f", fallback_from="m"))
    assert {*node, "children"} == set(shapes.Node.model_fields)


def test_every_field_of_a_run_is_in_the_document() -> None:
    run = listed_run_from_wire(engine.Run(status=run_pb2.RUN_STATUS_STOPPED))
    assert set(run) == set(run_shapes.Run.model_fields)


@pytest.mark.parametrize("name", ["RUNNING", "DONE", "PARTIAL", "STOPPED", "FAILED"])
def test_every_status_of_a_run_is_one_of_the_document(name: str) -> None:
    run = listed_run_from_wire(engine.Run(status=run_pb2.RunStatus.Value(f"RUN_STATUS_{name}")))
    assert run["status"] in get_args(run_shapes.Run.model_fields["status"].annotation)


def test_every_field_of_a_mode_is_in_the_document() -> None:
    assert set(mode_from_wire(engine.Mode())) == set(shapes.Mode.model_fields)


def test_a_classic_answer_has_no_thinking() -> None:
    run = treestore.Run(run_id="r", details=treestore.RunDetails(mode="conversation"))
    assert message_from_wire(treestore.Message(role=treestore.ROLE_ASSISTANT, run=run), [])["thinking"] is None


def test_a_question_is_never_partial() -> None:
    assert message_from_wire(treestore.Message(role=treestore.ROLE_USER), [])["partial"] is False


def test_whole_numbers_of_a_configuration_stay_whole() -> None:
    mode = engine.Mode()
    mode.thinking_config.update({"max_steps": 5, "ratio": 0.5, "inner": {"list": [1, True]}})
    written = mode_from_wire(mode)["thinking_config"]
    assert repr(written["max_steps"]) == "5"
    assert written == {"max_steps": 5, "ratio": 0.5, "inner": {"list": [1, True]}}


def test_every_type_of_event_has_its_fields() -> None:
    for field in engine.ThinkingEvent.DESCRIPTOR.oneofs_by_name["event"].fields:
        event = engine.ThinkingEvent(run_id="r", seq=1)
        getattr(event, field.name).SetInParent()
        if field.name == "thinking_step":
            event.thinking_step.status = engine.STEP_STATUS_STARTED
        written = event_from_wire(event)
        assert written is not None
        assert written["type"] == field.name


def test_an_event_of_a_later_version_is_passed_over() -> None:
    assert event_from_wire(engine.ThinkingEvent(run_id="r", seq=1)) is None
