"""The ledger of runs: each step of a question on its way to an answer, kept whole or not at all, and repeatable.

Every function works within one transaction that the caller owns. A conversation's lock is taken first, so what is
read after it doesn't change until the transaction ends.
"""

import hmac
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from kit.errors import InvalidField
from services.treestore.errors import IdempotencyKeyReused, IdTaken, NotFound, RunClosed, RunInProgress
from services.treestore.records import Answer, Conversation, Details, ModeSource, Run, RunStatus, Start, Usage
from services.treestore.run_keys import request_mac
from services.treestore.run_queries import Locked
from services.treestore.settlement import close_silent
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
    last_seq: int = 0
    """The number of the run's last event."""


async def create_conversation(
    tx: Transaction, conversation_id: uuid.UUID, owner: str, title: str, mode: str
) -> Conversation:
    """Start an empty conversation; the same id from the same owner is the same conversation. Raises IdTaken."""
    source = ModeSource.USER if mode else ModeSource.NOBODY
    created = await tx.conversations.create_conversation(conversation_id, owner, title, mode, source)
    if created is not None:
        await tx.trees.create(created)
        return created
    conversation = await tx.conversations.conversation(conversation_id, owner, lock=True)
    if conversation is None:
        raise IdTaken("conversation_id")
    return conversation


async def start_run(tx: Transaction, owner: str, start: Start) -> tuple[Run, Conversation]:
    """Store the user's message and the run, with the conversation if it is new.

    Repeating it is the same answer, and so is another start with the same idempotency key, which stores nothing.
    A run with a stale heartbeat that stands in the way is closed first.
    Raises NotFound (the conversation, or the node to continue), IdTaken, IdempotencyKeyReused, RunInProgress, TreeFull,
    DataLoss.
    """
    if start.idempotency_key:
        twin = await _twin(tx, owner, start)
        if twin is not None:
            return twin
    if start.new_conversation:
        created = await tx.conversations.create_conversation(
            start.conversation_id, owner, start.title, "", ModeSource.NOBODY
        )
        if created is not None:
            # It is nobody else's before the transaction ends: no run and no node is in it.
            if start.parent_node_id:
                raise NotFound
            await tx.trees.create(created)
            return await _begin(tx, created, start, ""), created
    conversation = await tx.conversations.conversation(start.conversation_id, owner, lock=True)
    if conversation is None:
        raise IdTaken("conversation_id") if start.new_conversation else NotFound
    known = await tx.runs.get(start.run_id, owner)
    if known is not None:
        if (known[0].conversation_id, known[0].message_id) != (start.conversation_id, start.message_id):
            raise IdTaken("run_id")
        return known
    if start.new_conversation:
        raise IdTaken("conversation_id")
    if not await close_silent(tx, conversation.id):
        raise RunInProgress
    run = await _begin(tx, conversation, start, await _parent(tx, conversation, start.parent_node_id))
    return run, await tx.conversations.change_conversation(conversation)


async def heartbeat(tx: Transaction, owner: str, run_id: uuid.UUID, last_seq: int) -> bool:
    """Note that a run is alive and how many events it has: whether the user wants it to end.

    Raises RunClosed, NotFound.
    """
    stop = await tx.runs.beat(run_id, owner, last_seq)
    if stop is None:
        await _run(tx, owner, run_id)
        raise RunClosed
    return stop


async def request_stop(tx: Transaction, owner: str, run_id: uuid.UUID) -> None:
    """Note that the user wants a run to end; of one that has ended nothing is noted. Raises NotFound."""
    if not await tx.runs.request_stop(run_id, owner):
        await _run(tx, owner, run_id)


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
    run = await tx.runs.close(
        locked, finish.status, finish.step_failed, finish.answer, finish.last_seq, finish.usage, finish.details
    )
    await tx.trees.note_run(conversation, finish.details.schema, finish.details.duration_ms)
    await tx.conversations.change_conversation(
        conversation,
        mode=(finish.mode, finish.mode_source) if finish.mode else None,
        active_node_id=finish.active_node_id or None,
    )
    return run


async def _begin(tx: Transaction, conversation: Conversation, start: Start, parent: str) -> Run:
    """Store a run that begins now after the node `parent`, and its question. Raises IdTaken."""
    run = await tx.runs.add(start, conversation, parent)
    if run is None:
        raise IdTaken("run_id")
    if not await tx.conversations.add_question(conversation, start, parent):
        raise IdTaken("message_id")
    return run


async def _twin(tx: Transaction, owner: str, start: Start) -> tuple[Run, Conversation] | None:
    """What the start's idempotency key has started before, if anything. Raises IdempotencyKeyReused."""
    known = await tx.runs.of_key(owner, start.idempotency_key)
    if known is None:
        return None
    run, conversation, kept = known
    if not hmac.compare_digest(kept, request_mac(conversation.key, run.id, start.request_hash)):
        raise IdempotencyKeyReused
    return run, conversation


async def _run(tx: Transaction, owner: str, run_id: uuid.UUID) -> Run:
    found = await tx.runs.get(run_id, owner)
    if found is None:
        raise NotFound
    return found[0]


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
