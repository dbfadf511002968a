"""Conversations: the list, one of them, its messages, its thought tree."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from lintello.treestore.v1 import treestore_pb2 as pb
from starlette.responses import Response

from gateway.bodies import CleanRoute
from gateway.clients import Clients
from gateway.routes.common import AsCaller, Cursor, Limit, ToServices, json_answer, page
from gateway.shapes import Conversation, ConversationChange, Conversations, Messages, NewConversation, Tree
from gateway.wire import conversation_from_wire, message_from_wire, tree_from_wire
from kit.identity import Caller

router = APIRouter(prefix="/api/conversations", tags=["conversations"], route_class=CleanRoute)

TREE_SECONDS = 10
"""A whole tree may be 20 MiB."""


@router.get("", response_model=Conversations)
async def list_conversations(caller: AsCaller, clients: ToServices, limit: Limit = 20, cursor: Cursor = "") -> Response:
    """The caller's conversations, the one that changed last in front."""
    request = pb.ListConversationsRequest(page_size=limit, page_token=cursor)
    found = await clients.treestore_peer.unary(clients.treestore.ListConversations, request, caller)
    return page([conversation_from_wire(one) for one in found.conversations], found.next_page_token)


@router.post("", response_model=Conversation, status_code=201)
async def create_conversation(body: NewConversation, caller: AsCaller, clients: ToServices) -> Response:
    """Start an empty conversation."""
    request = pb.CreateConversationRequest(title=body.title, mode=body.mode or "")
    made = await clients.treestore_peer.unary(clients.treestore.CreateConversation, request, caller)
    return json_answer(conversation_from_wire(made.conversation), 201)


@router.get("/{conversation_id}", response_model=Conversation)
async def get_conversation(conversation_id: str, caller: AsCaller, clients: ToServices) -> Response:
    """One conversation."""
    request = pb.GetConversationRequest(conversation_id=conversation_id)
    found = await clients.treestore_peer.unary(clients.treestore.GetConversation, request, caller)
    return json_answer(conversation_from_wire(found.conversation))


@router.patch("/{conversation_id}", response_model=Conversation)
async def change_conversation(
    conversation_id: str, body: ConversationChange, caller: AsCaller, clients: ToServices
) -> Response:
    """Change its title or its mode."""
    mode = (body.mode or "") if "mode" in body.model_fields_set else None
    request = pb.UpdateConversationRequest(conversation_id=conversation_id, title=body.title, mode=mode)
    changed = await clients.treestore_peer.unary(clients.treestore.UpdateConversation, request, caller)
    return json_answer(conversation_from_wire(changed.conversation))


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(conversation_id: str, caller: AsCaller, clients: ToServices) -> Response:
    """Delete it with all that hangs on it. Repeating it is the same answer."""
    request = pb.DeleteConversationRequest(conversation_id=conversation_id)
    await clients.treestore_peer.unary(clients.treestore.DeleteConversation, request, caller)
    return Response(status_code=204)


@router.get("/{conversation_id}/messages", response_model=Messages)
async def list_messages(
    conversation_id: str, caller: AsCaller, clients: ToServices, limit: Limit = 50, cursor: Cursor = ""
) -> Response:
    """Its messages, the oldest in front, each answer with what its run thought."""
    request = pb.ListMessagesRequest(conversation_id=conversation_id, page_size=limit, page_token=cursor)
    found = await clients.treestore_peer.unary(clients.treestore.ListMessages, request, caller)
    thought = any(message.run.details.schema for message in found.messages)
    nodes = (await _tree(conversation_id, caller, clients)).nodes if thought else ()
    return page([message_from_wire(message, nodes) for message in found.messages], found.next_page_token)


@router.get("/{conversation_id}/tree", response_model=Tree)
async def get_tree(
    conversation_id: str,
    caller: AsCaller,
    clients: ToServices,
    shape: Annotated[Literal["nested", "flat"], Query()] = "nested",
) -> Response:
    """Its thought tree: nested, or flat with each node's parents only."""
    return json_answer(tree_from_wire(await _tree(conversation_id, caller, clients), shape == "nested"))


async def _tree(conversation_id: str, caller: Caller, clients: Clients) -> pb.GetTreeResponse:
    request = pb.GetTreeRequest(conversation_id=conversation_id)
    return await clients.treestore_peer.unary(clients.treestore.GetTree, request, caller, TREE_SECONDS)
