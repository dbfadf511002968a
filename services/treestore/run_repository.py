"""The ledger's rows in PostgreSQL. Every query that starts from an id has the owner beside it."""

import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from services.treestore import tables
from services.treestore.books_repository import used
from services.treestore.records import Active, Answer, Conversation, Details, Run, RunStatus, Start, Usage
from services.treestore.rows import is_alive, is_stale, open_conversation, open_run, seal_details
from services.treestore.run_keys import lock_number, request_mac
from services.treestore.run_queries import (
    ABANDON,
    ABANDON_STALE,
    ACTIVE,
    ACTIVE_IN,
    ADD,
    BEAT,
    FINISH,
    LOCK,
    LOCK_KEY,
    OF_ID,
    OF_KEY,
    RUNS,
    RUNS_WITH_CONVERSATION,
    Locked,
    open_locked,
)
from services.treestore.sealing import Keyring

_run = tables.run.c


class RunRepository:
    """Runs, within one transaction that the caller owns."""

    def __init__(self, connection: AsyncConnection, keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring

    async def add(self, start: Start, conversation: Conversation, parent_node_id: str) -> Run | None:
        """Enter a run that begins now; None when its id is in use."""
        known_again = request_mac(conversation.key, start.run_id, start.request_hash) if start.idempotency_key else None
        row = {
            "id": start.run_id,
            "owner": conversation.owner,
            "conversation_id": conversation.id,
            "message_id": start.message_id,
            "parent_node_id": parent_node_id,
            "subscription": start.subscription,
            "idempotency_key": start.idempotency_key or None,
            "request_hash": known_again,
        }
        added = await self._connection.execute(ADD, row)
        now: datetime | None = added.scalar()
        if now is None:
            return None
        return Run(
            id=start.run_id,
            conversation_id=conversation.id,
            status=RunStatus.RUNNING,
            partial=False,
            abandoned=False,
            message_id=start.message_id,
            answer_id=None,
            answer_node_id="",
            parent_node_id=parent_node_id,
            last_seq=0,
            usage=(),
            details=Details(),
            heartbeat_at=now,
            created_at=now,
            ended_at=None,
        )

    async def get(self, run_id: uuid.UUID, owner: str) -> tuple[Run, Conversation] | None:
        """The owner's run, with its conversation. Raises DataLoss."""
        row = (await self._connection.execute(OF_ID, {"run": run_id, "user": owner})).mappings().first()
        if row is None:
            return None
        conversation = open_conversation(row, self._keyring)
        return open_run(row, conversation.key), conversation

    async def of_key(self, owner: str, key: str) -> tuple[Run, Conversation, bytes] | None:
        """The run an idempotency key of the owner's has started, its conversation, and the request's MAC.

        Until the transaction ends, nobody else gets past this for the same key. Raises DataLoss.
        """
        # A statement of its own: what the next one sees is what the twin that was waited for has committed.
        await self._connection.execute(LOCK_KEY, {"number": lock_number(owner, key)})
        row = (await self._connection.execute(OF_KEY, {"user": owner, "key": key})).mappings().first()
        if row is None:
            return None
        conversation = open_conversation(row, self._keyring)
        return open_run(row, conversation.key), conversation, row[_run.request_hash]

    async def page(
        self,
        owner: str,
        conversation_id: uuid.UUID | None,
        active_only: bool,
        before: tuple[datetime, uuid.UUID] | None,
        limit: int,
    ) -> list[Run]:
        """The owner's runs, all or one conversation's, the one that began last in front. Raises DataLoss."""
        query = RUNS_WITH_CONVERSATION.where(_run.owner == owner)
        if conversation_id is not None:
            query = query.where(_run.conversation_id == conversation_id)
        if active_only:
            query = query.where(is_alive())
        if before is not None:
            query = query.where(tuple_(_run.created_at, _run.id) < tuple_(*before))
        query = query.order_by(_run.created_at.desc(), _run.id.desc()).limit(limit)
        rows = (await self._connection.execute(query)).mappings()
        return [open_run(row, open_conversation(row, self._keyring).key) for row in rows]

    async def of_conversation(self, conversation: Conversation, run_ids: Collection[str]) -> list[Run]:
        """Those of these runs that the conversation has, the oldest in front. Raises DataLoss."""
        query = RUNS.where(_run.conversation_id == conversation.id).order_by(_run.created_at, _run.id)
        rows = (await self._connection.execute(query)).mappings()
        return [open_run(row, conversation.key) for row in rows if str(row[_run.id]) in run_ids]

    async def lock(self, run_id: uuid.UUID, owner: str) -> Locked | None:
        """The owner's run, locked with its conversation and its tree. Raises DataLoss."""
        row = (await self._connection.execute(LOCK, {"run": run_id, "user": owner})).mappings().first()
        if row is None:
            return None
        return open_locked(row, run_id, self._keyring)

    async def active(self, conversation_id: uuid.UUID) -> Active | None:
        """The conversation's run that goes on, if one does."""
        row = (await self._connection.execute(ACTIVE_IN, {"conversation": conversation_id})).first()
        return None if row is None else Active(*row)

    async def stale(self, limit: int) -> list[Active]:
        """Runs of all owners whose heartbeat is stale, the one that fell silent first in front."""
        query = ACTIVE.where(is_stale()).order_by(_run.heartbeat_at).limit(limit)
        return [Active(*row) for row in await self._connection.execute(query)]

    async def beat(self, run_id: uuid.UUID, owner: str, last_seq: int) -> bool | None:
        """Note that a run is alive, and how far it is: whether it shall end.

        None when the owner has no such run that goes on.
        """
        beaten = await self._connection.execute(BEAT, {"run": run_id, "user": owner, "seq": last_seq})
        stop: bool | None = beaten.scalar()
        return stop

    async def request_stop(self, run_id: uuid.UUID, owner: str) -> bool:
        """Note that a run shall end; False when the owner has no such run that goes on."""
        noted = await self._connection.execute(
            update(tables.run)
            .where(_run.id == run_id, _run.owner == owner, _run.status == RunStatus.RUNNING)
            .values(stop_requested=True)
        )
        return noted.rowcount > 0

    async def close(
        self,
        locked: Locked,
        status: RunStatus,
        step_failed: bool,
        answer: Answer | None,
        last_seq: int,
        usage: Sequence[Usage],
        details: Details,
    ) -> Run:
        """End a run; from now on it waits to be settled. The run as it is then."""
        answer_id, answer_node_id = (answer.message_id, answer.node_id) if answer is not None else (None, "")
        values = {
            "run": locked.run_id,
            "to_status": status,
            "failed": step_failed,
            "answer": answer_id,
            "seq": last_seq,
            "sealed": seal_details(details, locked.run_id, locked.conversation),
        }
        closed = await self._connection.execute(FINISH, values | used(usage, details))
        row = closed.one()
        return Run(
            id=locked.run_id,
            conversation_id=locked.conversation.id,
            status=status,
            partial=row.partial,
            abandoned=False,
            message_id=locked.message_id,
            answer_id=answer_id,
            answer_node_id=answer_node_id,
            parent_node_id=locked.parent_node_id,
            last_seq=row.last_seq,
            usage=tuple(usage),
            details=details,
            heartbeat_at=row.heartbeat_at,
            created_at=row.created_at,
            ended_at=row.ended_at,
        )

    async def abandon(
        self, active: Active, even_alive: bool, usage: Sequence[Usage], details: Details, sealed: bytes | None
    ) -> bool:
        """End a run as partial in its engine's stead; from now on it waits to be settled.

        False when it has ended meanwhile, or isn't stale any more and not to be ended `even_alive`.
        """
        statement = ABANDON if even_alive else ABANDON_STALE
        values = {"run": active.run_id, "sealed": sealed}
        closed = await self._connection.execute(statement, values | used(usage, details))
        return closed.first() is not None
