"""Events to the wire and back: what the replay log gives is what was said."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lintello.common.v1 import node_pb2
from lintello.engine.v1 import engine_pb2 as pb

from kit.text import clean
from services.engine.domain import Degraded, Node, Role, Status
from services.engine.events import (
    Content,
    Done,
    Event,
    ModeSwitched,
    Numbered,
    RunStarted,
    ThinkingCompleted,
    ThinkingStarted,
    ThinkingStep,
    Trouble,
)
from services.engine.wire_events import UnknownEvent, event_from_wire, event_to_wire

RUN_ID = "01890a5d-ac96-774b-bcce-b302099a8057"
WHEN = datetime(2025, 11, 30, 12, 0, tzinfo=UTC)

# What a model or a setting gives: NUL and halves of surrogate pairs too. The rest was checked or made here.
texts = st.text(st.characters() | st.sampled_from("\x00\ud83d\ude00\u2028\n"), max_size=40)
names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=10)
numbers = st.integers(0, 2**31 - 1)
costs = st.floats(0, 1e6)
scores = st.none() | st.floats(0, 1)
moments = st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001

nodes = st.builds(
    Node,
    id=names,
    parents=st.lists(names, max_size=3).map(tuple),
    role=st.sampled_from(Role),
    status=st.sampled_from(Status),
    summary=texts,
    content=texts,
    model=texts,
    run_id=names,
    input_tokens=numbers,
    output_tokens=numbers,
    duration_ms=numbers,
    branch=names,
    score=scores,
    message_id=names,
    failure=names,
    fallback_from=texts,
)
kinds: dict[type[Any], st.SearchStrategy[Any]] = {
    RunStarted: st.builds(RunStarted, names, names, names),
    ModeSwitched: st.builds(ModeSwitched, names, names, st.sampled_from(["requested", "detected"])),
    ThinkingStarted: st.builds(ThinkingStarted, names, names, names, numbers, names),
    ThinkingStep: st.builds(
        ThinkingStep,
        step=numbers,
        total=numbers,
        status=st.sampled_from(["started", "completed", "failed"]),
        summary=texts,
        icon=names,
        role=names,
        node_id=names,
        parent_id=names,
        branch=names,
        model=texts,
        tokens=numbers,
        score=scores,
        duration_ms=numbers,
    ),
    Content: st.builds(Content, texts),
    ThinkingCompleted: st.builds(
        ThinkingCompleted,
        nodes=st.lists(nodes, max_size=3).map(tuple),
        input_tokens=numbers,
        output_tokens=numbers,
        duration_ms=numbers,
        cost_eur=costs,
        schema=names,
        mode=names,
        complexity=numbers,
        display_template=names,
        partial=st.booleans(),
    ),
    Trouble: st.builds(Trouble, names, names, st.booleans()),
    Done: st.builds(
        Done,
        conversation_id=names,
        message_id=names,
        node_id=names,
        model=texts,
        tokens_used=numbers,
        cost_eur=costs,
        thinking=st.booleans(),
        partial=st.booleans(),
        degraded=st.sampled_from(get_args(Degraded)),
    ),
}


def cleaned(value: Any) -> Any:
    """An event or a node with all its text clean."""
    if isinstance(value, str):
        return type(value)(clean(value))
    if isinstance(value, tuple):
        return tuple(cleaned(part) for part in value)
    if isinstance(value, Event | Node):
        return replace(value, **{field.name: cleaned(getattr(value, field.name)) for field in fields(value)})
    return value


def test_every_kind_of_event_is_tried() -> None:
    assert set(kinds) == set(get_args(Event))


@pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)
@given(data=st.data(), seq=st.integers(1, 2**62), at=moments)
def test_an_event_comes_back_from_its_bytes_as_it_was(
    kind: type[Any], data: st.DataObject, seq: int, at: datetime
) -> None:
    event = data.draw(kinds[kind])
    sent = event_to_wire(RUN_ID, Numbered(seq, at, event)).SerializeToString()
    assert event_from_wire(pb.ThinkingEvent.FromString(sent)) == Numbered(seq, at, cleaned(event))


def test_an_event_says_which_run_it_belongs_to() -> None:
    assert event_to_wire(RUN_ID, Numbered(1, WHEN, Content("a"))).run_id == RUN_ID


@pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_an_event_is_told_as_what_it_is(kind: type[Any], data: st.DataObject) -> None:
    wire = event_to_wire(RUN_ID, Numbered(1, WHEN, data.draw(kinds[kind])))
    name = wire.WhichOneof("event")
    assert name is not None
    assert type(getattr(wire, name)).DESCRIPTOR.name == {"Trouble": "Error"}.get(kind.__name__, kind.__name__)


@pytest.mark.parametrize(
    "wire",
    [
        pb.ThinkingEvent(seq=1),
        pb.ThinkingEvent(seq=1, thinking_step=pb.ThinkingStep(step=1)),
        pb.ThinkingEvent(
            seq=1, thinking_completed=pb.ThinkingCompleted(nodes=[node_pb2.Node(role=node_pb2.NODE_ROLE_MERGE)])
        ),
    ],
    ids=["another kind", "another step status", "another node role"],
)
def test_what_another_version_wrote_is_refused_by_name(wire: pb.ThinkingEvent) -> None:
    with pytest.raises(UnknownEvent):
        event_from_wire(wire)
