"""Questions, runs and the books, between the wire and the engine."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lintello.common.v1 import run_pb2
from lintello.engine.v1 import engine_pb2 as pb
from lintello.quota.v1 import quota_pb2 as quota
from lintello.treestore.v1 import treestore_pb2 as store

from kit.errors import InvalidField
from services.engine.domain import Details, Ending, Finish, ModelUsage, RunRecord, Unsettled
from services.engine.ports import RunUsage
from services.engine.wire import (
    finish_to_wire,
    question_from_wire,
    request_hash,
    run_from_wire,
    run_to_wire,
    run_usage_to_wire,
    started_from_wire,
    unsettled_from_wire,
)

RUN_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
CONVERSATION_ID = "01890a5d-ac96-774b-bcce-b302099a8058"
BEGAN = datetime(2025, 11, 30, 12, 0, tzinfo=UTC)
ENDED = BEGAN + timedelta(seconds=40)
DETAILS = Details("chain", "general", 4, "timeline", 40_000, "busy", 0.02, 7, 1, 2)
USAGE = (ModelUsage("large-1", 120, 30, False), ModelUsage("small-1", 12, 3, True))


def asked(**fields: Any) -> pb.ThinkRequest:
    return pb.ThinkRequest(**{"message": "Pourquoi ?", "idempotency_key": "une-clef", **fields})


def hash_of(**fields: Any) -> bytes:
    return question_from_wire(asked(**fields), "fr").request_hash


def record(**fields: Any) -> RunRecord:
    given: dict[str, Any] = {
        "run_id": RUN_ID,
        "conversation_id": CONVERSATION_ID,
        "status": "done",
        "partial": False,
        "abandoned": False,
        "last_seq": 9,
        "answer_id": "a",
        "answer_node_id": "n",
        "details": DETAILS,
        "usage": USAGE,
        "started_at": BEGAN,
        "ended_at": ENDED,
        "heartbeat_at": ENDED,
    }
    return RunRecord(**{**given, **fields})


@pytest.mark.parametrize("key", ["é", "a\n", "a\x00", "\x7f", "k" * 201])
def test_an_idempotency_key_that_is_not_short_printable_ascii_is_refused_by_name(key: str) -> None:
    with pytest.raises(InvalidField) as refused:
        question_from_wire(asked(idempotency_key=key), "fr")
    assert refused.value.name == "idempotency_key"
    assert key not in str(refused.value)


@pytest.mark.parametrize("key", ["k", "k" * 200, "a-z_A-Z.0-9", "a b~!"])
def test_an_idempotency_key_is_taken_as_it_is(key: str) -> None:
    assert question_from_wire(asked(idempotency_key=key), "fr").idempotency_key == key


def test_without_a_key_there_is_no_hash() -> None:
    question = question_from_wire(asked(idempotency_key=""), "fr")
    assert (question.idempotency_key, question.request_hash) == ("", b"")


def test_the_hash_of_a_request_is_a_sha256_that_stays_the_same_between_versions() -> None:
    expected = "ddf7555f384291a81bd6591ce095bcc957d7b102ea1dc9febf7f9e5ef66c139e"
    assert hash_of(conversation_id=CONVERSATION_ID, parent_node_id="n1", mode="code").hex() == expected


@pytest.mark.parametrize(
    "same",
    [
        {"idempotency_key": "une autre"},
        {"on_disconnect": pb.ON_DISCONNECT_CONTINUE},
        {"thinking": pb.THINKING_AUTO},
        {"locale": "fr"},
        {"message": "Pourquoi\x00 ?"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_does_not_change_the_question_does_not_change_its_hash(same: dict[str, Any]) -> None:
    assert hash_of(**same) == hash_of()


def test_every_part_of_a_question_changes_its_hash() -> None:
    there = {"conversation_id": CONVERSATION_ID}
    hashes = [
        hash_of(),
        hash_of(message="Pourquoi ? "),
        hash_of(mode="code"),
        hash_of(thinking=pb.THINKING_ON),
        hash_of(thinking=pb.THINKING_OFF),
        hash_of(model="large"),
        hash_of(locale="en"),
        hash_of(**there),
        hash_of(**there, parent_node_id=""),
        hash_of(**there, parent_node_id="active"),
    ]
    assert len(set(hashes)) == len(hashes)


@given(st.text(max_size=6), st.text(max_size=6), st.text(max_size=6), st.text(max_size=6))
def test_text_that_moves_from_one_field_to_the_next_changes_the_hash(a: str, b: str, c: str, d: str) -> None:
    question = question_from_wire(asked(), "fr")
    first = request_hash(replace(question, message=a, mode=b))
    second = request_hash(replace(question, message=c, mode=d))
    assert (first == second) == ((a, b) == (c, d))


def test_a_started_run_comes_with_its_event_key() -> None:
    answer = store.StartRunResponse(
        run=store.Run(run_id=RUN_ID, message_id="m", parent_node_id="p"),
        conversation=store.Conversation(conversation_id=CONVERSATION_ID, mode="code"),
        event_key=b"k" * 32,
    )
    started = started_from_wire(answer)
    assert (started.run_id, started.conversation_id, started.event_key) == (RUN_ID, CONVERSATION_ID, b"k" * 32)
    assert "kkk" not in repr(started)


@pytest.mark.parametrize("status", ["running", "done", "partial", "stopped", "failed"])
def test_a_run_is_read_from_the_ledger(status: str) -> None:
    assert run_from_wire(ledger_run(status), b"k" * 32) == record(status=status, event_key=b"k" * 32)


def test_a_run_that_goes_on_has_no_end() -> None:
    run = ledger_run("running")
    run.ClearField("ended_at")
    assert run_from_wire(run).ended_at is None


def test_an_unsettled_run_comes_with_its_owner() -> None:
    wire = store.UnsettledRun(run=ledger_run("partial"), owner="alice", subscription="pro")
    assert unsettled_from_wire(wire) == Unsettled(record(status="partial"), "alice", "pro")


@pytest.mark.parametrize(
    ("run", "status"),
    [
        (record(status="running", ended_at=None), run_pb2.RUN_STATUS_RUNNING),
        (record(status="running", partial=True, ended_at=None), run_pb2.RUN_STATUS_PARTIAL),
        (record(status="done", partial=True), run_pb2.RUN_STATUS_DONE),
        (record(status="stopped", partial=True), run_pb2.RUN_STATUS_STOPPED),
    ],
    ids=["running", "silent", "done with a failed step", "stopped"],
)
def test_a_run_is_shown_where_it_stands(run: RunRecord, status: int) -> None:
    assert run_to_wire(run).status == status


def test_a_run_is_shown_with_its_times_and_its_last_event() -> None:
    wire = run_to_wire(record())
    assert (wire.run_id, wire.conversation_id, wire.last_seq) == (RUN_ID, CONVERSATION_ID, 9)
    assert (wire.started_at.ToDatetime(UTC), wire.ended_at.ToDatetime(UTC)) == (BEGAN, ENDED)


def test_a_run_that_goes_on_is_shown_without_an_end() -> None:
    assert not run_to_wire(record(status="running", ended_at=None)).HasField("ended_at")


def test_the_end_of_a_run_carries_its_counts_and_its_last_number() -> None:
    finish = Finish(RUN_ID, Ending.STOPPED, True, "", "", (), "", USAGE, DETAILS, "code", False, "large-1", last_seq=12)
    wire = finish_to_wire(finish)
    assert (wire.status, wire.last_seq) == (run_pb2.RUN_STATUS_STOPPED, 12)
    assert (wire.details.node_count, wire.details.fallbacks, wire.details.retries) == (7, 1, 2)
    assert list(wire.usage) == list(ledger_run("done").usage)


def test_a_row_of_the_books_holds_what_the_run_used() -> None:
    wire = run_usage_to_wire(RunUsage(RUN_ID, Ending.PARTIAL, USAGE, DETAILS, True, BEGAN))
    expected = quota.RecordUsageRequest(
        run_id=RUN_ID,
        status=run_pb2.RUN_STATUS_PARTIAL,
        mode="general",
        schema="chain",
        node_count=7,
        usage=ledger_run("done").usage,
        cost_eur=0.02,
        fallbacks=1,
        retries=2,
        partial=True,
        duration_ms=40_000,
    )
    expected.started_at.FromDatetime(BEGAN)
    assert wire == expected


def ledger_run(status: str) -> store.Run:
    """What `record` is on the wire."""
    run = store.Run(
        run_id=RUN_ID,
        conversation_id=CONVERSATION_ID,
        status=run_pb2.RunStatus.Value(f"RUN_STATUS_{status.upper()}"),
        answer_id="a",
        answer_node_id="n",
        last_seq=9,
        details=store.RunDetails(
            schema="chain",
            mode="general",
            complexity=4,
            display_template="timeline",
            duration_ms=40_000,
            degraded="busy",
            cost_eur=0.02,
            node_count=7,
            fallbacks=1,
            retries=2,
        ),
        usage=[
            run_pb2.Usage(model="large-1", input_tokens=120, output_tokens=30),
            run_pb2.Usage(model="small-1", input_tokens=12, output_tokens=3, estimated=True),
        ],
    )
    run.created_at.FromDatetime(BEGAN)
    run.ended_at.FromDatetime(ENDED)
    run.heartbeat_at.FromDatetime(ENDED)
    return run
