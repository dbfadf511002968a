"""The ledger of runs: each step of a question on its way to an answer, kept whole or not at all, and repeatable.

Every function works within one transaction that the caller owns. A conversation's lock is taken first, so what is
read after it doesn't change until the transaction ends.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kit.errors import InvalidField
from services.treestore.errors import IdTaken, NotFound, RunClosed, RunInProgress
from services.treestore.records import Answer, Conversation, Details, ModeSource, Run, RunStatus, Start, Usage
from services.treestore.run_repository import Locked
from services.treestore.store import Transaction
from services.treestore.tree import MAX_BYTES, MAX_NODES, ROOM_BYTES, ROOM_NODES, Node, Outline, TreeFull
from services.treestore.tree_repository import TreeHead


@dataclass(frozen=True)
class Finish:
    """How a run ended and what it leaves."""

    status: RunStatus
    step_failed: bool
    answer: Answer | None
    nodes: tuple[Node, ...]
    active_node_id: str
    """Becomes the active node; empty: it stays as it is."""
    usage: tuple[Usage, ...]
    details: Details
    mode: str
    """Becomes the conversation's mode; empty: it stays as it is."""
    mode_source: ModeSource


async def create_conversation(
    tx: Transaction, conversation_id: uuid.UUID, owner: str, title: str, mode: str
) -> Conversation:
    """Start an empty conversation; the same id from the same owner is the same conversation. Raises IdTaken."""
    source = ModeSource.USER if mode else ModeSource.NOBODY
    created = await tx.conversations.create_conversation(conversation_id, owner, title, mode, source)
    conversation = await tx.conversations.conversation(conversation_id, owner, lock=True)
    if conversation is None:
        raise IdTaken("conversation_id")
    if created:
        await tx.trees.create(conversation)
    return conversation


async def start_run(tx: Transaction, owner: str, start: Start) -> tuple[Run, Conversation]:
    """Store the user's message and the run, with the conversation if it is new.

    Repeating it is the same answer. A run with a stale heartbeat that stands in the way is closed first.
    Raises NotFound (the conversation, or the node to continue), IdTaken, RunInProgress, TreeFull, DataLoss.
    """
    created = start.new_conversation and await tx.conversations.create_conversation(
        start.conversation_id, owner, start.title, "", ModeSource.NOBODY
    )
    conversation = await tx.conversations.conversation(start.conversation_id, owner, lock=True)
    if conversation is None:
        raise IdTaken("conversation_id") if start.new_conversation else NotFound
    known = await tx.runs.get(start.run_id, owner)
    if known is not None:
        if (known.conversation_id, known.message_id) != (start.conversation_id, start.message_id):
            raise IdTaken("run_id")
        return known, conversation
    if created:
        await tx.trees.create(conversation)
    elif start.new_conversation:
        raise IdTaken("conversation_id")
    await tx.runs.close_stale(conversation)
    if await tx.runs.is_active(conversation):
        raise RunInProgress
    parent = await _parent(tx, conversation, start.parent_node_id)
    if not await tx.runs.add(start, conversation, parent):
        raise IdTaken("run_id")
    if not await tx.conversations.add_question(conversation, start, parent):
        raise IdTaken("message_id")
    await tx.conversations.change_conversation(conversation)
    return await _run(tx, owner, start.run_id), await _reread(tx, conversation)


async def heartbeat(tx: Transaction, owner: str, run_id: uuid.UUID) -> None:
    """Note that a run is alive. Raises RunClosed, NotFound."""
    if await tx.runs.beat(run_id, owner):
        return
    await _run(tx, owner, run_id)
    raise RunClosed


async def append_nodes(tx: Transaction, owner: str, run_id: uuid.UUID, nodes: Sequence[Node]) -> int:
    """Add nodes of a run to its conversation's tree; the tree's version. Nodes it already added stay as they are.

    Raises NotFound, RunClosed, TreeInvalid, TreeFull, DataLoss.
    """
    locked = await _lock(tx, owner, run_id)
    outline = await tx.trees.outline(locked.conversation, locked.tree)
    grown, added = outline.admit(nodes)
    if not added:
        return locked.tree.version
    if locked.status is not RunStatus.RUNNING:
        raise RunClosed
    return await tx.trees.append(locked.conversation, locked.tree, grown, added)


async def finish_run(tx: Transaction, owner: str, run_id: uuid.UUID, finish: Finish) -> Run:
    """End a run: store its answer, its last nodes, the active node, its status and usage.

    Repeating it is the same answer. Raises NotFound, RunClosed (somebody else closed it), IdTaken, InvalidField,
    TreeInvalid, TreeFull, DataLoss.
    """
    locked = await _lock(tx, owner, run_id)
    conversation = locked.conversation
    answer_id = finish.answer.message_id if finish.answer is not None else None
    if locked.status is not RunStatus.RUNNING:
        if locked.abandoned or (locked.status, locked.answer_id) != (finish.status, answer_id):
            raise RunClosed
        return await _run(tx, owner, run_id)
    outline = await _grow(tx, locked, finish.nodes)
    if finish.active_node_id and finish.active_node_id not in outline:
        raise InvalidField("active_node_id", "is not in the tree")
    if finish.answer is not None:
        tokens = sum(usage.input_tokens + usage.output_tokens for usage in finish.usage)
        if not await tx.conversations.add_answer(conversation, finish.answer, run_id, locked.message_id, tokens):
            raise IdTaken("message_id")
    await tx.runs.close(locked, finish.status, finish.step_failed, answer_id, finish.usage, finish.details)
    await tx.trees.note_run(conversation, finish.details.schema, finish.details.duration_ms)
    await tx.conversations.change_conversation(
        conversation,
        mode=(finish.mode, finish.mode_source) if finish.mode else None,
        active_node_id=finish.active_node_id or None,
    )
    return await _run(tx, owner, run_id)


async def _run(tx: Transaction, owner: str, run_id: uuid.UUID) -> Run:
    run = await tx.runs.get(run_id, owner)
    if run is None:
        raise NotFound
    return run


async def _lock(tx: Transaction, owner: str, run_id: uuid.UUID) -> Locked:
    locked = await tx.runs.lock(run_id, owner)
    if locked is None:
        raise NotFound
    return locked


async def _grow(tx: Transaction, locked: Locked, nodes: Sequence[Node]) -> Outline:
    outline = await tx.trees.outline(locked.conversation, locked.tree)
    grown, added = outline.admit(nodes)
    if added:
        await tx.trees.append(locked.conversation, locked.tree, grown, added)
    return grown


async def _parent(tx: Transaction, conversation: Conversation, asked: str | None) -> str:
    """The node that a new run continues."""
    head = await tx.trees.head(conversation)
    if not _has_room(head):
        raise TreeFull
    if asked is None:
        return conversation.active_node_id
    if asked and asked not in await tx.trees.outline(conversation, head):
        raise NotFound
    return asked


def _has_room(head: TreeHead) -> bool:
    """Whether one more run fits, so that no answer is refused when it has been written."""
    size = head.snapshot_bytes + head.delta_bytes
    return head.node_count + ROOM_NODES <= MAX_NODES and size + ROOM_BYTES <= MAX_BYTES


async def _reread(tx: Transaction, conversation: Conversation) -> Conversation:
    again = await tx.conversations.conversation(conversation.id, conversation.owner)
    if again is None:
        raise NotFound
    return again
