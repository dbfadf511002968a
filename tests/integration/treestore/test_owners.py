"""What belongs to somebody else can't be told from what doesn't exist; who may call is told by the token."""

from collections.abc import Callable
from typing import Any

import pytest
from lintello.common.v1 import run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from kit.errors import RemoteError
from services.treestore.servicer import ACCESS
from tests.integration.treestore.client import Client, new_id, node

FIELDS = ("conversation_id", "run_id")

# For every RPC that names a thing: a request for the thing with these ids.
REQUESTS: dict[str, Callable[[str, str], Any]] = {
    "GetConversation": lambda conversation, run: pb.GetConversationRequest(conversation_id=conversation),
    "UpdateConversation": lambda conversation, run: pb.UpdateConversationRequest(
        conversation_id=conversation, title="x"
    ),
    "DeleteConversation": lambda conversation, run: pb.DeleteConversationRequest(conversation_id=conversation),
    "ListMessages": lambda conversation, run: pb.ListMessagesRequest(conversation_id=conversation),
    "GetRun": lambda conversation, run: pb.GetRunRequest(run_id=run),
    "GetTree": lambda conversation, run: pb.GetTreeRequest(conversation_id=conversation),
    "GetLineage": lambda conversation, run: pb.GetLineageRequest(conversation_id=conversation, node_id="n1"),
    "StartRun": lambda conversation, run: pb.StartRunRequest(
        run_id=new_id(), message_id=new_id(), conversation_id=conversation, message="x"
    ),
    "ListRuns": lambda conversation, run: pb.ListRunsRequest(conversation_id=conversation),
    "Heartbeat": lambda conversation, run: pb.HeartbeatRequest(run_id=run),
    "RequestStop": lambda conversation, run: pb.RequestStopRequest(run_id=run),
    "SettleRun": lambda conversation, run: pb.SettleRunRequest(run_id=run),
    "FinishRun": lambda conversation, run: pb.FinishRunRequest(run_id=run, status=run_pb2.RUN_STATUS_DONE),
    "AppendNodes": lambda conversation, run: pb.AppendNodesRequest(run_id=run, nodes=[node("n2")]),
}
NAMELESS = {"CreateConversation", "ListConversations", "ListUnsettledRuns"}
BAD_IDS = ["../../etc/passwd", "x" * 10_240, "not-a-uuid", "", "a\x00b"]


def test_every_rpc_that_names_a_thing_is_tried() -> None:
    names = {method.rpartition("/")[2] for method in ACCESS}
    assert set(REQUESTS) == names - NAMELESS


@pytest.mark.parametrize("name", REQUESTS)
async def test_another_users_thing_is_not_found_as_if_it_did_not_exist(alice: Client, bob: Client, name: str) -> None:
    started = await alice.start(message="privé")
    conversation_id, run_id = started.conversation.conversation_id, started.run.run_id
    await alice.append(run_id, node("n1"))
    refusals = []
    for ids in ((conversation_id, run_id), (new_id(), new_id())):
        with pytest.raises(RemoteError) as refusal:
            await bob.call(name, REQUESTS[name](*ids))
        error = refusal.value
        refusals.append((error.code, error.reason, error.message, error.fields, error.metadata))
    assert refusals[0] == refusals[1]
    assert refusals[0][1] == "NOT_FOUND"
    assert [each.id for each in (await alice.tree(conversation_id)).nodes] == ["n1"]


@pytest.mark.parametrize(
    ("name", "bad"),
    # Of no conversation, ListRuns reads the runs of all.
    [(name, bad) for name in REQUESTS for bad in BAD_IDS if (name, bad) != ("ListRuns", "")],
    ids=lambda value: value if len(value) < 50 else "10 kB",
)
async def test_an_id_that_is_not_a_uuid_is_named_and_not_quoted(alice: Client, name: str, bad: str) -> None:
    with pytest.raises(RemoteError) as refusal:
        await alice.call(name, REQUESTS[name](bad, bad))
    assert refusal.value.reason == "INVALID_ARGUMENT"
    assert set(refusal.value.fields) <= set(FIELDS)
    assert len(refusal.value.message) < 100


@pytest.mark.parametrize(
    "name", [method.rpartition("/")[2] for method, access in ACCESS.items() if access == "service"]
)
async def test_the_gateways_token_does_not_do_for_what_services_call(alice: Client, name: str) -> None:
    started = await alice.start()
    ids = (started.conversation.conversation_id, started.run.run_id)
    request = REQUESTS[name](*ids) if name in REQUESTS else pb.ListUnsettledRunsRequest()
    with pytest.raises(RemoteError) as refusal:
        await alice.call(name, request, by="gateway")
    assert refusal.value.reason == "FORBIDDEN"
