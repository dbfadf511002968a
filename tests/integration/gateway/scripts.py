"""Events as an engine sends them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import node_pb2
from lintello.engine.v1 import engine_pb2 as pb

from tests.integration.gateway.backend import Script, Scripted

RUN = "01990000-0000-7000-8000-000000000001"
CONVERSATION = "01990000-0000-7000-8000-000000000002"
QUESTION = "01990000-0000-7000-8000-000000000003"
ANSWER = "01990000-0000-7000-8000-000000000004"
AT = Timestamp(seconds=1_800_000_000, nanos=500_000_000)


def node(name: str, *parents: str, **fields: Any) -> node_pb2.Node:
    """A finished node of the run."""
    given: dict[str, Any] = {"role": node_pb2.NODE_ROLE_EXECUTE, "status": node_pb2.NODE_STATUS_EXPLORED, "run_id": RUN}
    return node_pb2.Node(id=name, parents=parents, **(given | fields))


STARTED = {"run_started": pb.RunStarted(conversation_id=CONVERSATION, message_id=QUESTION)}
DONE = {"done": pb.Done(conversation_id=CONVERSATION, message_id=ANSWER, node_id="a", model="m-1", tokens_used=7)}
THOUGHT = {
    "thinking_completed": pb.ThinkingCompleted(
        nodes=[node("d", role=node_pb2.NODE_ROLE_DECOMPOSE, input_tokens=3, output_tokens=4), node("s", "d")],
        tokens_used=7,
        input_tokens=3,
        output_tokens=4,
        node_count=2,
        duration_ms=1200,
        cost_eur=0.001,
        display_template="drawer",
        schema="chain",
        mode="recherche",
        complexity=4,
    )
}
STEP = {
    "thinking_step": pb.ThinkingStep(
        step=1,
        total=2,
        status=pb.STEP_STATUS_STARTED,
        summary="Décomposition…",
        icon="🔍",
        role="decompose",
        node_id="d",
    )
}
THINKING = {
    "thinking_started": pb.ThinkingStarted(
        schema="chain", mode="recherche", mode_name="Recherche", complexity=4, display_template="drawer"
    )
}
CLASSIC: tuple[dict[str, Any], ...] = (
    STARTED,
    {"content": pb.Content(content="Bon")},
    {"content": pb.Content(content="jour.")},
    DONE,
)
THINK: tuple[dict[str, Any], ...] = (
    STARTED,
    {"mode_switched": pb.ModeSwitched(to="recherche", reason="detected")},
    THINKING,
    STEP,
    {"content": pb.Content(content="Voici.")},
    THOUGHT,
    {"done": pb.Done(conversation_id=CONVERSATION, message_id=ANSWER, node_id="s", model="m-1", thinking=True)},
)


def numbered(bodies: Sequence[dict[str, Any]]) -> list[pb.ThinkingEvent]:
    """The events of the run with their sequence numbers."""
    return [pb.ThinkingEvent(run_id=RUN, seq=seq, at=AT, **body) for seq, body in enumerate(bodies, 1)]


def plays(*bodies: dict[str, Any], hold: bool = False, broken: bool = False) -> Script:
    """A run of these events, asked for or watched after one of them.

    With `hold` it goes on in silence after them; with `broken` the call that carries them is refused then.
    """

    async def script(request: pb.ThinkRequest | pb.WatchRunRequest) -> AsyncGenerator[pb.ThinkingEvent, None]:
        seen = request.after_seq if isinstance(request, pb.WatchRunRequest) else 0
        for event in numbered(bodies)[seen:]:
            yield event
        if hold:
            await asyncio.Event().wait()
        if broken:
            raise Scripted

    return script
