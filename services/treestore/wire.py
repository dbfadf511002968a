"""Between the wire and the domain: two pure functions a type; what comes in is checked and cleaned here, once.

Here conversations and messages; nodes in `node_wire`, runs in `run_wire`.
"""

from lintello.treestore.v1 import treestore_pb2 as pb

from services.treestore.records import Author, Conversation, Message
from services.treestore.run_wire import MODE_SOURCES, run_to_wire, time_to_wire

_SOURCES_TO_WIRE = {source: number for number, source in MODE_SOURCES.items()}
_AUTHORS_TO_WIRE = {Author.USER: pb.ROLE_USER, Author.ASSISTANT: pb.ROLE_ASSISTANT}


def conversation_to_wire(conversation: Conversation) -> pb.Conversation:
    """A conversation."""
    return pb.Conversation(
        conversation_id=str(conversation.id),
        title=conversation.title,
        mode=conversation.mode,
        mode_source=_SOURCES_TO_WIRE[conversation.mode_source],
        active_node_id=conversation.active_node_id,
        created_at=time_to_wire(conversation.created_at),
        updated_at=time_to_wire(conversation.updated_at),
    )


def message_to_wire(message: Message) -> pb.Message:
    """A message."""
    return pb.Message(
        message_id=str(message.id),
        role=_AUTHORS_TO_WIRE[message.author],
        content=message.content,
        reply_to=str(message.reply_to or ""),
        run_id=str(message.run_id),
        node_id=message.node_id,
        model=message.model,
        tokens=message.tokens,
        created_at=time_to_wire(message.created_at),
        run=run_to_wire(message.run) if message.run is not None else None,
    )
