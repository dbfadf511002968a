from typing import Any

import pytest
from lintello.common.v1 import node_pb2, run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import InvalidField, TooLarge
from services.treestore.checks import page_size_field, title_field, uuid_field
from services.treestore.node_wire import node_to_wire, nodes_from_wire
from services.treestore.run_wire import finish_from_wire, start_from_wire
from services.treestore.tree import Node, Role, Status

RUN = "01980000-0000-7000-8000-000000000001"
ANSWER = "01980000-0000-7000-8000-000000000002"
CONVERSATION = "01980000-0000-7000-8000-000000000003"


def wire_node(**fields: Any) -> node_pb2.Node:
    given: dict[str, Any] = {
        "id": "n1",
        "role": node_pb2.NODE_ROLE_EXECUTE,
        "status": node_pb2.NODE_STATUS_EXPLORED,
    }
    return node_pb2.Node(**{**given, **fields})


def start(**fields: Any) -> pb.StartRunRequest:
    given = {"run_id": RUN, "message_id": ANSWER, "conversation_id": CONVERSATION, "message": "Pourquoi ?"}
    return pb.StartRunRequest(**{**given, **fields})


def finish(**fields: Any) -> pb.FinishRunRequest:
    return pb.FinishRunRequest(**{"run_id": RUN, "status": run_pb2.RUN_STATUS_DONE, **fields})


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("status", list(Status))
def test_a_node_comes_back_as_it_went(role: Role, status: Status) -> None:
    node = Node(
        id="n2",
        role=role,
        status=status,
        run_id=RUN,
        parents=("n1",),
        branch="b",
        summary="s",
        content="c",
        score=0.0,
        input_tokens=1,
        output_tokens=2,
        model="m",
        message_id=ANSWER,
        failure="f",
        fallback_from="l",
        duration_ms=3,
    )
    assert nodes_from_wire([node_to_wire(node)], RUN) == (node,)


def test_a_node_without_a_score_stays_without() -> None:
    assert nodes_from_wire([wire_node()], RUN)[0].score is None


def test_a_node_belongs_to_the_run_that_stores_it() -> None:
    assert nodes_from_wire([wire_node(run_id="")], RUN)[0].run_id == RUN


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"id": ""}, "nodes[0].id"),
        ({"id": "x" * 51}, "nodes[0].id"),
        ({"id": "a\0"}, "nodes[0].id"),
        ({"parents": [""]}, "nodes[0].parents"),
        ({"role": 0}, "nodes[0].role"),
        ({"role": 99}, "nodes[0].role"),
        ({"status": 0}, "nodes[0].status"),
        ({"status": node_pb2.NODE_STATUS_EXPLORING}, "nodes[0].status"),
        ({"run_id": ANSWER}, "nodes[0].run_id"),
        ({"run_id": "x"}, "nodes[0].run_id"),
        ({"message_id": "x"}, "nodes[0].message_id"),
    ],
)
def test_a_bad_field_of_a_node_is_named(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        nodes_from_wire([wire_node(**fields)], RUN)
    assert refusal.value.name == name


def test_nul_is_dropped_from_texts_and_line_ends_stay() -> None:
    node = nodes_from_wire([wire_node(content="a\0b\r\n\u2028c")], RUN)[0]
    assert node.content == "ab\r\n\u2028c"


@pytest.mark.parametrize(
    "value",
    [
        "",
        "x",
        "../../etc/passwd",
        "0" * 32,
        f"{{{RUN}}}",
        f"urn:uuid:{RUN}",
        RUN + "0",
        RUN + "\n",
        "é" * 36,
        "x" * 10_240,
    ],
)
def test_what_is_not_a_uuid_of_36_characters_is_refused_without_a_quote(value: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        uuid_field("run_id", value)
    assert str(refusal.value) == "run_id: must be a UUID of 36 characters"


@pytest.mark.parametrize("name", ["run_id", "message_id", "conversation_id"])
def test_a_start_names_the_id_that_is_wrong(name: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        start_from_wire(start(**{name: "nope"}))
    assert refusal.value.name == name


@pytest.mark.parametrize("message", ["", " \n\t", "\0"])
def test_a_question_must_have_a_character_that_is_not_blank(message: str) -> None:
    with pytest.raises(InvalidField, match="message"):
        start_from_wire(start(message=message))


def test_a_question_of_256_kib_is_taken() -> None:
    assert start_from_wire(start(message="é" * (128 * 1024))).message.startswith("é")


def test_a_question_above_256_kib_is_too_large() -> None:
    with pytest.raises(TooLarge):
        start_from_wire(start(message="é" * (128 * 1024) + "x"))


def test_an_absent_parent_differs_from_an_empty_one() -> None:
    assert start_from_wire(start()).parent_node_id is None
    assert start_from_wire(start(parent_node_id="")).parent_node_id == ""


@pytest.mark.parametrize("key", ["k", "~ !", "x" * 200])
def test_an_idempotency_key_comes_with_the_hash_of_its_request(key: str) -> None:
    taken = start_from_wire(start(idempotency_key=key, request_hash=bytes(32), subscription="pro"))
    assert (taken.idempotency_key, taken.request_hash, taken.subscription) == (key, bytes(32), "pro")


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"idempotency_key": "x" * 201, "request_hash": bytes(32)}, "idempotency_key"),
        ({"idempotency_key": "clé", "request_hash": bytes(32)}, "idempotency_key"),
        ({"idempotency_key": "a\tb", "request_hash": bytes(32)}, "idempotency_key"),
        ({"idempotency_key": "a\x7f", "request_hash": bytes(32)}, "idempotency_key"),
        ({"idempotency_key": "k"}, "request_hash"),
        ({"idempotency_key": "k", "request_hash": bytes(31)}, "request_hash"),
        ({"request_hash": bytes(32)}, "request_hash"),
        ({"subscription": "x" * 201}, "subscription"),
    ],
)
def test_a_bad_field_of_a_start_is_named(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        start_from_wire(start(**fields))
    assert refusal.value.name == name


@pytest.mark.parametrize(("title", "least"), [("x" * 201, 0), ("", 1), ("  ", 1)])
def test_a_title_out_of_bounds_is_refused(title: str, least: int) -> None:
    with pytest.raises(InvalidField, match="title"):
        title_field(title, least)


@pytest.mark.parametrize(
    "fields",
    [
        {"status": run_pb2.RUN_STATUS_UNSPECIFIED},
        {"status": run_pb2.RUN_STATUS_RUNNING},
        {"status": 99},
        {"mode": "Un Mode"},
        {"mode_source": 99},
        {"active_node_id": "x" * 51},
        {"content": "an answer without an id"},
        {"message_id": ANSWER, "content": "an answer without a node"},
        {"message_id": ANSWER, "nodes": [wire_node(message_id=ANSWER), wire_node(id="n2", message_id=ANSWER)]},
        {"usage": [run_pb2.Usage(model="m", input_tokens=-1)]},
        {"usage": [run_pb2.Usage(model="x" * 201)]},
        {"usage": [run_pb2.Usage()] * 101},
        {"details": pb.RunDetails(complexity=6)},
        {"details": pb.RunDetails(cost_eur=float("nan"))},
        {"details": pb.RunDetails(duration_ms=-1)},
        {"details": pb.RunDetails(node_count=-1)},
        {"details": pb.RunDetails(fallbacks=-1)},
        {"details": pb.RunDetails(retries=-1)},
        {"last_seq": -1},
    ],
    ids=str,
)
def test_an_end_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidField):
        finish_from_wire(finish(**fields))


def test_an_answer_stands_at_the_node_that_carries_its_id() -> None:
    ended = finish_from_wire(
        finish(
            message_id=ANSWER.upper(), content="Parce que.", nodes=[wire_node(), wire_node(id="n2", message_id=ANSWER)]
        )
    )
    assert ended.answer is not None
    assert (str(ended.answer.message_id), ended.answer.node_id) == (ANSWER, "n2")


@pytest.mark.parametrize(("value", "size"), [(0, 20), (1, 1), (100, 100)])
def test_a_page_has_its_default_size_or_the_one_asked_for(value: int, size: int) -> None:
    assert page_size_field(value, default=20, most=100) == size


@pytest.mark.parametrize("value", [-1, 101])
def test_a_page_size_out_of_bounds_is_refused(value: int) -> None:
    with pytest.raises(InvalidField, match="page_size"):
        page_size_field(value, default=20, most=100)
