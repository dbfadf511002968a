"""A caller of treestore over a real channel, as the gateway and the engine are."""

import uuid
from collections.abc import Awaitable
from typing import Any

import asyncpg
import pytest
import uuid_utils.compat
from lintello.common.v1 import node_pb2, run_pb2
from lintello.treestore.v1 import treestore_pb2 as pb
from lintello.treestore.v1 import treestore_pb2_grpc

from kit.channel import Peer
from kit.errors import RemoteError
from kit.identity import Caller
from services.treestore.servicer import ACCESS, RPC_SERVICE
from tests.servers.identity import Keys


def new_id() -> str:
    """A UUIDv7."""
    return str(uuid_utils.compat.uuid7())


def node(node_id: str, *parents: str, **fields: Any) -> node_pb2.Node:
    """A finished node."""
    role = node_pb2.NODE_ROLE_MERGE if len(parents) > 1 else node_pb2.NODE_ROLE_EXECUTE
    given: dict[str, Any] = {"role": role, "status": node_pb2.NODE_STATUS_EXPLORED, "content": f"contenu {node_id}"}
    return node_pb2.Node(id=node_id, parents=parents, **{**given, **fields})


async def refused(attempt: Awaitable[Any]) -> str:
    """The reason an attempt is refused for."""
    with pytest.raises(RemoteError) as refusal:
        await attempt
    return refusal.value.reason


async def grow_stale(sql: asyncpg.Connection, run_id: str) -> None:
    """Let a run's last heartbeat be 16 s ago."""
    await sql.execute("UPDATE treestore.run SET heartbeat_at = now() - interval '16 s' WHERE id = $1", run_id)


class Client:
    """Calls every RPC for one user: those for services with the engine's token, the others with the gateway's."""

    def __init__(self, address: str, keys: Keys, user: str = "") -> None:
        self.caller = Caller(user=user or f"user-{uuid.uuid4()}", subscription="pro")
        self._gateway = Peer(address, "treestore", keys.gateway_signer.mint)
        self._engine = Peer(address, "treestore", keys.engine_signer.mint)

    async def close(self) -> None:
        await self._gateway.close()
        await self._engine.close()

    async def call(self, name: str, request: Any, *, timeout: float = 20, by: str = "") -> Any:
        """Call an RPC by its name. Raises RemoteError. `by`: with the token of gateway or engine in any case."""
        usual = "engine" if ACCESS[f"/{RPC_SERVICE}/{name}"] == "service" else "gateway"
        peer = self._engine if (by or usual) == "engine" else self._gateway
        method = getattr(treestore_pb2_grpc.TreeStoreServiceStub(peer.channel), name)
        return await peer.unary(method, request, self.caller, timeout)

    async def create(self, **fields: Any) -> pb.Conversation:
        """CreateConversation."""
        answer: pb.CreateConversationResponse = await self.call(
            "CreateConversation", pb.CreateConversationRequest(**fields)
        )
        return answer.conversation

    async def start(self, **fields: Any) -> pb.StartRunResponse:
        """StartRun; without a conversation_id, in a new conversation."""
        given: dict[str, Any] = {"run_id": new_id(), "message_id": new_id(), "message": "Pourquoi ?"}
        if "conversation_id" not in fields:
            given |= {"conversation_id": new_id(), "new_conversation": True, "title": "Un titre"}
        answer: pb.StartRunResponse = await self.call("StartRun", pb.StartRunRequest(**{**given, **fields}))
        return answer

    async def append(self, run_id: str, *nodes: node_pb2.Node) -> int:
        """AppendNodes: the version."""
        request = pb.AppendNodesRequest(run_id=run_id, nodes=nodes)
        answer: pb.AppendNodesResponse = await self.call("AppendNodes", request)
        return answer.version

    async def finish(self, run_id: str, **fields: Any) -> pb.Run:
        """FinishRun, done without an answer unless said otherwise."""
        given: dict[str, Any] = {"run_id": run_id, "status": run_pb2.RUN_STATUS_DONE}
        answer: pb.FinishRunResponse = await self.call("FinishRun", pb.FinishRunRequest(**{**given, **fields}))
        return answer.run

    async def answer(self, run_id: str, node_id: str, *parents: str, content: str = "Parce que.", **fields: Any) -> str:
        """FinishRun with an answer at a node that becomes active: the answer's message_id."""
        message_id = new_id()
        at = node(node_id, *parents, message_id=message_id, content=content, role=node_pb2.NODE_ROLE_CONVERSATION)
        given: dict[str, Any] = {"message_id": message_id, "content": content, "nodes": [at], "active_node_id": node_id}
        await self.finish(run_id, **{**given, **fields})
        return message_id

    async def tree(self, conversation_id: str) -> pb.GetTreeResponse:
        """GetTree."""
        answer: pb.GetTreeResponse = await self.call("GetTree", pb.GetTreeRequest(conversation_id=conversation_id))
        return answer

    async def beat(self, run_id: str, last_seq: int = 0) -> bool:
        """Heartbeat: whether the run shall end."""
        answer: pb.HeartbeatResponse = await self.call(
            "Heartbeat", pb.HeartbeatRequest(run_id=run_id, last_seq=last_seq)
        )
        return answer.stop_requested

    async def request_stop(self, run_id: str) -> None:
        """RequestStop."""
        await self.call("RequestStop", pb.RequestStopRequest(run_id=run_id))

    async def runs(self, **fields: Any) -> pb.ListRunsResponse:
        """ListRuns."""
        answer: pb.ListRunsResponse = await self.call("ListRuns", pb.ListRunsRequest(**fields))
        return answer

    async def unsettled(self, page_size: int = 200) -> list[pb.UnsettledRun]:
        """ListUnsettledRuns: of all owners."""
        request = pb.ListUnsettledRunsRequest(page_size=page_size)
        answer: pb.ListUnsettledRunsResponse = await self.call("ListUnsettledRuns", request)
        return list(answer.runs)

    async def settle(self, run_id: str) -> None:
        """SettleRun."""
        await self.call("SettleRun", pb.SettleRunRequest(run_id=run_id))

    async def run(self, run_id: str) -> pb.Run:
        """GetRun."""
        answer: pb.GetRunResponse = await self.call("GetRun", pb.GetRunRequest(run_id=run_id))
        return answer.run

    async def messages(self, conversation_id: str, **fields: Any) -> pb.ListMessagesResponse:
        """ListMessages."""
        request = pb.ListMessagesRequest(conversation_id=conversation_id, **fields)
        answer: pb.ListMessagesResponse = await self.call("ListMessages", request)
        return answer

    async def delete(self, conversation_id: str) -> None:
        """DeleteConversation."""
        await self.call("DeleteConversation", pb.DeleteConversationRequest(conversation_id=conversation_id))
