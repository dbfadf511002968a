"""The ledger's rows in PostgreSQL. Every query that starts from an id has the owner beside it."""

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from services.treestore import tables
from services.treestore.records import Conversation, Details, Run, RunStatus, Start, Usage
from services.treestore.rows import is_partial, is_stale, open_conversation, open_run, seal_details, usage_to_json
from services.treestore.sealing import Keyring
from services.treestore.tree_repository import TREE_HEAD, TreeHead, read_head


@dataclass(frozen=True)
class Locked:
    """A run with its conversation and where its tree stands, locked until the transaction ends."""

    run_id: uuid.UUID
    status: RunStatus
    abandoned: bool
    message_id: uuid.UUID
    answer_id: uuid.UUID | None
    conversation: Conversation
    tree: TreeHead


# Built once: it stands in the way of every append.
#
# All three rows are locked, and so all three are read as they are once the lock is there, not as they were before.
# The conversation stands first, as everywhere, so that two writers can't wait for each other.
_LOCK = (
    select(
        tables.conversation,
        tables.run.c.status,
        tables.run.c.abandoned,
        tables.run.c.message_id,
        tables.run.c.answer_id,
        *TREE_HEAD,
    )
    .join(tables.run, tables.run.c.conversation_id == tables.conversation.c.id)
    .join(tables.thought_tree, tables.thought_tree.c.conversation_id == tables.conversation.c.id)
    .where(tables.run.c.id == bindparam("run"), tables.run.c.owner == bindparam("user"))
    .with_for_update(key_share=True, of=[tables.conversation, tables.run, tables.thought_tree])
)


class RunRepository:
    """Runs, within one transaction that the caller owns."""

    def __init__(self, connection: AsyncConnection, keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring

    async def add(self, start: Start, conversation: Conversation, parent_node_id: str) -> bool:
        """Enter a run that begins now; False when its id is in use."""
        added = await self._connection.execute(
            upsert(tables.run)
            .values(
                id=start.run_id,
                owner=conversation.owner,
                conversation_id=conversation.id,
                status=RunStatus.RUNNING,
                step_failed=False,
                abandoned=False,
                message_id=start.message_id,
                parent_node_id=parent_node_id,
                usage=[],
                heartbeat_at=func.now(),
                created_at=func.now(),
            )
            .on_conflict_do_nothing(index_elements=["id"])
            .returning(tables.run.c.id)
        )
        return added.first() is not None

    async def get(self, run_id: uuid.UUID, owner: str) -> Run | None:
        """The owner's run. Raises DataLoss."""
        query = (
            select(tables.run, tables.conversation, is_partial())
            .join(tables.conversation)
            .where(tables.run.c.id == run_id, tables.run.c.owner == owner)
        )
        row = (await self._connection.execute(query)).mappings().first()
        return None if row is None else open_run(row, open_conversation(row, self._keyring).key)

    async def lock(self, run_id: uuid.UUID, owner: str) -> Locked | None:
        """The owner's run, locked with its conversation and its tree. Raises DataLoss."""
        row = (await self._connection.execute(_LOCK, {"run": run_id, "user": owner})).mappings().first()
        if row is None:
            return None
        columns = tables.run.c
        return Locked(
            run_id=run_id,
            status=RunStatus(row[columns.status]),
            abandoned=row[columns.abandoned],
            message_id=row[columns.message_id],
            answer_id=row[columns.answer_id],
            conversation=open_conversation(row, self._keyring),
            tree=read_head(row),
        )

    async def of_conversation(self, conversation: Conversation, run_ids: Collection[str]) -> list[Run]:
        """Those of these runs that the conversation has, the oldest in front. Raises DataLoss."""
        query = (
            select(tables.run, is_partial())
            .where(tables.run.c.conversation_id == conversation.id)
            .order_by(tables.run.c.created_at, tables.run.c.id)
        )
        rows = (await self._connection.execute(query)).mappings()
        return [open_run(row, conversation.key) for row in rows if str(row[tables.run.c.id]) in run_ids]

    async def is_active(self, conversation: Conversation) -> bool:
        """Whether the conversation has a run that goes on."""
        query = select(tables.run.c.id).where(
            tables.run.c.conversation_id == conversation.id, tables.run.c.status == RunStatus.RUNNING
        )
        return (await self._connection.execute(query)).first() is not None

    async def close_stale(self, conversation: Conversation | None = None) -> int:
        """Close runs with a stale heartbeat as partial, one conversation's or all; how many there were."""
        stale = select(tables.run.c.id).where(is_stale())
        if conversation is not None:
            stale = stale.where(tables.run.c.conversation_id == conversation.id).with_for_update()
        else:
            # What another replica is closing, or an engine finishing, needs no second hand.
            stale = stale.with_for_update(skip_locked=True)
        closed = await self._connection.execute(
            update(tables.run)
            .where(tables.run.c.id.in_(stale.scalar_subquery()))
            .values(status=RunStatus.PARTIAL, abandoned=True, ended_at=func.now())
        )
        return closed.rowcount

    async def beat(self, run_id: uuid.UUID, owner: str) -> bool:
        """Note that a run is alive; False when the owner has no such run that goes on."""
        beaten = await self._connection.execute(
            update(tables.run)
            .where(tables.run.c.id == run_id, tables.run.c.owner == owner, tables.run.c.status == RunStatus.RUNNING)
            .values(heartbeat_at=func.now())
        )
        return beaten.rowcount > 0

    async def close(
        self,
        locked: Locked,
        status: RunStatus,
        step_failed: bool,
        answer_id: uuid.UUID | None,
        usage: Sequence[Usage],
        details: Details,
    ) -> None:
        """End a run."""
        await self._connection.execute(
            update(tables.run)
            .where(tables.run.c.id == locked.run_id)
            .values(
                status=status,
                step_failed=step_failed,
                answer_id=answer_id,
                usage=usage_to_json(usage),
                details=seal_details(details, locked.run_id, locked.conversation),
                ended_at=func.now(),
            )
        )
