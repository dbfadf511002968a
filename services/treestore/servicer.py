"""TreeStoreService: decode, do it in one transaction, encode. The owner is always the caller's user."""

import uuid
from typing import Any

import uuid_utils.compat
from lintello.treestore.v1 import treestore_pb2 as pb
from lintello.treestore.v1 import treestore_pb2_grpc

from kit.errors import InvalidField
from kit.identity import FRONT, Access, current
from services.treestore import ledger, settlement
from services.treestore.checks import count_field, node_id_field, page_size_field, slug_field, title_field, uuid_field
from services.treestore.errors import NotFound
from services.treestore.node_wire import node_to_wire, nodes_from_wire
from services.treestore.paging import PageTokens
from services.treestore.records import Conversation, Message, ModeSource, Run
from services.treestore.run_keys import event_key
from services.treestore.run_wire import finish_from_wire, run_to_wire, start_from_wire, unsettled_to_wire
from services.treestore.sealing import FORMAT
from services.treestore.store import Store, Transaction
from services.treestore.tree import Node, Tree
from services.treestore.wire import conversation_to_wire, message_to_wire

RPC_SERVICE = "lintello.treestore.v1.TreeStoreService"

ACCESS: dict[str, Access] = {
    f"/{RPC_SERVICE}/CreateConversation": "user",
    f"/{RPC_SERVICE}/GetConversation": "user",
    f"/{RPC_SERVICE}/ListConversations": "user",
    f"/{RPC_SERVICE}/UpdateConversation": "user",
    f"/{RPC_SERVICE}/DeleteConversation": "user",
    f"/{RPC_SERVICE}/ListMessages": "user",
    f"/{RPC_SERVICE}/GetRun": "user",
    f"/{RPC_SERVICE}/ListRuns": "user",
    f"/{RPC_SERVICE}/GetTree": "user",
    f"/{RPC_SERVICE}/GetLineage": "user",
    f"/{RPC_SERVICE}/StartRun": "service",
    f"/{RPC_SERVICE}/Heartbeat": "service",
    f"/{RPC_SERVICE}/RequestStop": "service",
    f"/{RPC_SERVICE}/FinishRun": "service",
    f"/{RPC_SERVICE}/ListUnsettledRuns": "service",
    f"/{RPC_SERVICE}/SettleRun": "service",
    f"/{RPC_SERVICE}/AppendNodes": "service",
}
"""Who may call which RPC."""


class Servicer(treestore_pb2_grpc.TreeStoreServiceServicer):
    """Answers the RPCs of TreeStoreService."""

    def __init__(self, store: Store, pages: PageTokens) -> None:
        self._store = store
        self._pages = pages

    async def CreateConversation(
        self, request: pb.CreateConversationRequest, context: Any
    ) -> pb.CreateConversationResponse:
        given = request.conversation_id
        conversation_id = uuid_field("conversation_id", given) if given else uuid_utils.compat.uuid7()
        title, mode, owner = title_field(request.title), slug_field("mode", request.mode), current.get().user
        conversation = await self._store.transact(
            lambda tx: ledger.create_conversation(tx, conversation_id, owner, title, mode)
        )
        return pb.CreateConversationResponse(conversation=conversation_to_wire(conversation))

    async def GetConversation(self, request: pb.GetConversationRequest, context: Any) -> pb.GetConversationResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user
        conversation = await self._store.transact(lambda tx: _conversation(tx, conversation_id, owner))
        return pb.GetConversationResponse(conversation=conversation_to_wire(conversation))

    async def ListConversations(
        self, request: pb.ListConversationsRequest, context: Any
    ) -> pb.ListConversationsResponse:
        size, owner = page_size_field(request.page_size, default=20, most=100), current.get().user
        scope = ("conversations", owner)
        before = self._pages.decode_row(scope, request.page_token)
        found = await self._store.transact(lambda tx: tx.conversations.conversations(owner, before, size + 1))
        token = ""
        if len(found) > size:
            token = self._pages.encode_row(scope, found[size - 1].updated_at, found[size - 1].id)
        return pb.ListConversationsResponse(
            conversations=[conversation_to_wire(conversation) for conversation in found[:size]], next_page_token=token
        )

    async def UpdateConversation(
        self, request: pb.UpdateConversationRequest, context: Any
    ) -> pb.UpdateConversationResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user
        title = title_field(request.title, least=1) if request.HasField("title") else None
        mode: tuple[str, ModeSource] | None = None
        if request.HasField("mode"):
            mode = (slug_field("mode", request.mode), ModeSource.USER if request.mode else ModeSource.NOBODY)
        if title is None and mode is None:
            raise InvalidField("title", "there is nothing to change: give a title or a mode")

        async def change(tx: Transaction) -> Conversation:
            conversation = await _conversation(tx, conversation_id, owner, lock=True)
            await tx.conversations.change_conversation(conversation, title=title, mode=mode)
            return await _conversation(tx, conversation_id, owner)

        changed = await self._store.transact(change)
        return pb.UpdateConversationResponse(conversation=conversation_to_wire(changed))

    async def DeleteConversation(
        self, request: pb.DeleteConversationRequest, context: Any
    ) -> pb.DeleteConversationResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user
        await self._store.transact(lambda tx: settlement.delete_conversation(tx, conversation_id, owner))
        return pb.DeleteConversationResponse()

    async def ListMessages(self, request: pb.ListMessagesRequest, context: Any) -> pb.ListMessagesResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user
        size = page_size_field(request.page_size, default=50, most=200)
        scope = ("messages", owner, str(conversation_id))
        after = int(self._pages.decode(scope, request.page_token)) if request.page_token else 0

        async def read(tx: Transaction) -> tuple[list[Message], int | None]:
            return await tx.conversations.messages(await _conversation(tx, conversation_id, owner), after, size)

        messages, last = await self._store.transact(read)
        token = self._pages.encode(scope, str(last)) if last is not None else ""
        return pb.ListMessagesResponse(
            messages=[message_to_wire(message) for message in messages], next_page_token=token
        )

    async def GetRun(self, request: pb.GetRunRequest, context: Any) -> pb.GetRunResponse:
        run_id, caller = uuid_field("run_id", request.run_id), current.get()
        found = await self._store.transact(lambda tx: tx.runs.get(run_id, caller.user))
        if found is None:
            raise NotFound
        run, conversation = found
        # Events pass through the gateway opened; what opens them wherever they are kept is none of its business.
        key = event_key(conversation.key, run.id) if caller.actor != FRONT else b""
        return pb.GetRunResponse(run=run_to_wire(run), event_key=key)

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        given, owner = request.conversation_id, current.get().user
        conversation_id = uuid_field("conversation_id", given) if given else None
        size = page_size_field(request.page_size, default=20, most=100)
        scope = ("runs", owner, str(conversation_id or ""), "active" if request.active_only else "all")
        before = self._pages.decode_row(scope, request.page_token)

        async def read(tx: Transaction) -> list[Run]:
            if conversation_id is not None:
                await _conversation(tx, conversation_id, owner)
            return await tx.runs.page(owner, conversation_id, request.active_only, before, size + 1)

        found = await self._store.transact(read)
        token = ""
        if len(found) > size:
            token = self._pages.encode_row(scope, found[size - 1].created_at, found[size - 1].id)
        return pb.ListRunsResponse(runs=[run_to_wire(run) for run in found[:size]], next_page_token=token)

    async def StartRun(self, request: pb.StartRunRequest, context: Any) -> pb.StartRunResponse:
        start, owner = start_from_wire(request), current.get().user
        run, conversation = await self._store.transact(lambda tx: ledger.start_run(tx, owner, start))
        return pb.StartRunResponse(
            run=run_to_wire(run),
            conversation=conversation_to_wire(conversation),
            event_key=event_key(conversation.key, run.id),
        )

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Any) -> pb.HeartbeatResponse:
        run_id, owner = uuid_field("run_id", request.run_id), current.get().user
        last_seq = count_field("last_seq", request.last_seq)
        stop = await self._store.transact(lambda tx: ledger.heartbeat(tx, owner, run_id, last_seq))
        return pb.HeartbeatResponse(stop_requested=stop)

    async def RequestStop(self, request: pb.RequestStopRequest, context: Any) -> pb.RequestStopResponse:
        run_id, owner = uuid_field("run_id", request.run_id), current.get().user
        await self._store.transact(lambda tx: ledger.request_stop(tx, owner, run_id))
        return pb.RequestStopResponse()

    async def AppendNodes(self, request: pb.AppendNodesRequest, context: Any) -> pb.AppendNodesResponse:
        run_id, owner = uuid_field("run_id", request.run_id), current.get().user
        nodes = nodes_from_wire(request.nodes, str(run_id))
        version = await self._store.transact(lambda tx: ledger.append_nodes(tx, owner, run_id, nodes))
        return pb.AppendNodesResponse(version=version)

    async def FinishRun(self, request: pb.FinishRunRequest, context: Any) -> pb.FinishRunResponse:
        run_id, owner = uuid_field("run_id", request.run_id), current.get().user
        finish = finish_from_wire(request)
        run = await self._store.transact(lambda tx: ledger.finish_run(tx, owner, run_id, finish))
        return pb.FinishRunResponse(run=run_to_wire(run))

    async def ListUnsettledRuns(
        self, request: pb.ListUnsettledRunsRequest, context: Any
    ) -> pb.ListUnsettledRunsResponse:
        size = page_size_field(request.page_size, default=50, most=200)
        unsettled = await settlement.list_unsettled(self._store, size)
        return pb.ListUnsettledRunsResponse(runs=[unsettled_to_wire(run) for run in unsettled])

    async def SettleRun(self, request: pb.SettleRunRequest, context: Any) -> pb.SettleRunResponse:
        run_id, owner = uuid_field("run_id", request.run_id), current.get().user
        await self._store.transact(lambda tx: settlement.settle_run(tx, owner, run_id))
        return pb.SettleRunResponse()

    async def GetTree(self, request: pb.GetTreeRequest, context: Any) -> pb.GetTreeResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user

        async def read(tx: Transaction) -> tuple[Conversation, int, Tree, list[Run]]:
            conversation = await _conversation(tx, conversation_id, owner)
            version, tree = await tx.trees.read(conversation)
            runs = await tx.runs.of_conversation(conversation, {node.run_id for node in tree.nodes})
            return conversation, version, tree, runs

        conversation, version, tree, runs = await self._store.transact(read)
        return pb.GetTreeResponse(
            format=FORMAT,
            version=version,
            nodes=[node_to_wire(node) for node in tree.nodes],
            active_node_id=conversation.active_node_id,
            runs=[run_to_wire(run) for run in runs],
        )

    async def GetLineage(self, request: pb.GetLineageRequest, context: Any) -> pb.GetLineageResponse:
        conversation_id, owner = uuid_field("conversation_id", request.conversation_id), current.get().user
        node_id = node_id_field("node_id", request.node_id)

        async def read(tx: Transaction) -> tuple[tuple[Node, ...], list[Message]]:
            conversation = await _conversation(tx, conversation_id, owner)
            _, tree = await tx.trees.read(conversation)
            if node_id not in tree:
                raise NotFound
            lineage = tree.lineage(node_id)
            return lineage, await tx.conversations.messages_along(conversation, [node.id for node in lineage])

        lineage, messages = await self._store.transact(read)
        return pb.GetLineageResponse(
            nodes=[node_to_wire(node) for node in lineage], messages=[message_to_wire(message) for message in messages]
        )


async def _conversation(tx: Transaction, conversation_id: uuid.UUID, owner: str, lock: bool = False) -> Conversation:
    conversation = await tx.conversations.conversation(conversation_id, owner, lock)
    if conversation is None:
        raise NotFound
    return conversation
