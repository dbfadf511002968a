"""The way of a run's usage into the books: nothing that was used is lost, and nothing stays that isn't needed for it.

A run that ends is entered by the statement that ends it. One whose engine has fallen silent, or whose conversation is
deleted under it, is ended here, and what its stored nodes say is what it used. Whoever holds the books lists what
isn't settled and settles it; any number of them may.
"""

import uuid
from collections.abc import Sequence
from functools import partial

from kit import telemetry
from services.treestore.errors import DataLoss, NotFound, RunInProgress
from services.treestore.records import Active, Details, Unsettled, Usage
from services.treestore.rows import seal_details
from services.treestore.store import Store, Transaction
from services.treestore.tree import Node


def usage_of(nodes: Sequence[Node]) -> tuple[Usage, ...]:
    """What nodes say was used for them, by the model that served; estimated: what never became a node isn't in it."""
    used: dict[str, tuple[int, int]] = {}
    for node in nodes:
        read, written = used.get(node.model, (0, 0))
        used[node.model] = (read + node.input_tokens, written + node.output_tokens)
    return tuple(Usage(model, *tokens, estimated=True) for model, tokens in used.items() if any(tokens))


async def close_silent(tx: Transaction, conversation_id: uuid.UUID) -> bool:
    """End the run that goes on in a conversation, whose lock the caller holds, if its heartbeat is stale.

    True when none goes on any more.
    """
    active = await tx.runs.active(conversation_id)
    if active is None:
        return True
    return active.stale and await _abandon(tx, active, even_alive=False)


async def delete_conversation(tx: Transaction, conversation_id: uuid.UUID, owner: str) -> None:
    """Delete a conversation with its key and all that hangs on it; what its runs used is still to be charged.

    Repeating it is the same answer. Raises NotFound.
    """
    if await tx.conversations.lock(conversation_id, owner):
        active = await tx.runs.active(conversation_id)
        if active is not None:
            await _abandon(tx, active, even_alive=True)
    if not await tx.conversations.delete_conversation(conversation_id, owner):
        raise NotFound


async def list_unsettled(store: Store, limit: int) -> list[Unsettled]:
    """Runs of all owners that have ended and aren't settled, after ending those whose engine is silent.

    Raises StoreAway.
    """
    closed = 0
    # Each in a transaction of its own: what one of them waits for holds up no other, and what was done stays done.
    for silent in await store.transact(lambda tx: tx.runs.stale(limit)):
        closed += await store.transact(partial(_sweep, run=silent))
    if closed:
        telemetry.log.info("stale_runs_closed", count=closed)
    return await store.transact(lambda tx: tx.books.unsettled(limit))


async def settle_run(tx: Transaction, owner: str, run_id: uuid.UUID) -> None:
    """Note that the usage of a run that has ended is recorded. Repeating it is the same answer.

    Raises RunInProgress; NotFound, also for a run that was deleted with its conversation and is settled.
    """
    if await tx.books.settle(run_id, owner):
        return
    found = await tx.runs.get(run_id, owner)
    if found is None:
        raise NotFound
    if found[0].ended_at is None:
        raise RunInProgress


async def _sweep(tx: Transaction, run: Active) -> bool:
    """End a silent run; False when somebody else did, or it isn't silent any more."""
    if not await tx.conversations.lock(run.conversation_id, run.owner):
        return False
    active = await tx.runs.active(run.conversation_id)
    return active is not None and active.stale and await _abandon(tx, active, even_alive=False)


async def _abandon(tx: Transaction, active: Active, even_alive: bool) -> bool:
    """End a run in its engine's stead. The caller holds its conversation's lock."""
    try:
        conversation = await tx.conversations.conversation(active.conversation_id, active.owner)
        if conversation is None:
            return False
        _, tree = await tx.trees.read(conversation)
    except DataLoss as loss:
        # What doesn't open tells nothing, but it must not keep a run open or a conversation from being deleted.
        telemetry.log.error("data_loss", **loss.metadata)
        return await tx.runs.abandon(active, even_alive, usage=(), details=Details(), sealed=None)
    nodes = [node for node in tree.nodes if node.run_id == str(active.run_id)]
    details = Details(
        mode=conversation.mode,
        duration_ms=round((active.heartbeat_at - active.created_at).total_seconds() * 1000),
        node_count=len(nodes),
        fallbacks=sum(1 for node in nodes if node.fallback_from),
    )
    sealed = seal_details(details, active.run_id, conversation)
    return await tx.runs.abandon(active, even_alive, usage_of(nodes), details, sealed)
