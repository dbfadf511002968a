"""Conversations and their messages in PostgreSQL. Every query that starts from an id has the owner beside it."""

import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, and_, bindparam, delete, func, insert, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from services.treestore import tables
from services.treestore.errors import IdTaken
from services.treestore.records import Answer, Author, Conversation, Message, ModeSource, Start
from services.treestore.rows import content_place, is_partial, open_conversation, open_message, title_place
from services.treestore.sealing import Keyring

PAGE_BYTES = 8 * 1024 * 1024
"""A page of messages ends before it would have more sealed bytes than this."""

_conversation = tables.conversation.c
_message = tables.message.c

# What every question and every answer needs is built once: that takes longer than to do it.
_CREATE = (
    upsert(tables.conversation)
    .values(active_node_id="", created_at=func.now(), updated_at=func.now())
    .on_conflict_do_nothing(index_elements=["id"])
    .returning(tables.conversation)
)
_DELETED = select(tables.deleted_conversation.c.id).where(tables.deleted_conversation.c.id == bindparam("conversation"))
_READ = select(tables.conversation).where(
    _conversation.id == bindparam("conversation"), _conversation.owner == bindparam("user")
)
_READ_LOCKED = _READ.with_for_update(key_share=True)
_CHANGE = (
    update(tables.conversation)
    .where(_conversation.id == bindparam("conversation"))
    .values(updated_at=func.now())
    .returning(tables.conversation)
)
_ADD = (
    upsert(tables.message)
    .values(
        # Positions are given under the conversation's lock, which the caller holds.
        position=select(func.coalesce(func.max(_message.position), 0) + 1)
        .where(_message.conversation_id == bindparam("conversation"))
        .scalar_subquery(),
        conversation_id=bindparam("conversation"),
        created_at=func.now(),
    )
    .on_conflict_do_nothing(index_elements=["id"])
    .returning(_message.id)
)


class Repository:
    """Conversations and messages, within one transaction that the caller owns."""

    def __init__(self, connection: AsyncConnection, keyring: Keyring) -> None:
        self._connection = connection
        self._keyring = keyring

    async def create_conversation(
        self, conversation_id: uuid.UUID, owner: str, title: str, mode: str, mode_source: ModeSource
    ) -> Conversation | None:
        """Store an empty conversation with a key of its own, locked; None when there is one of this id.

        Raises IdTaken when there was one that has been deleted.
        """
        key, wrapped = self._keyring.create(str(conversation_id), owner)
        row = {
            "id": conversation_id,
            "owner": owner,
            "title": key.seal(title_place(conversation_id, owner), title.encode()),
            "mode": mode,
            "mode_source": mode_source,
            "dek": wrapped.dek,
            "key_id": wrapped.key_id,
        }
        created = (await self._connection.execute(_CREATE, row)).mappings().first()
        if created is None:
            return None
        # Asked after the insert, which waits for a deletion that is going on: asked before, it could miss it.
        if (await self._connection.execute(_DELETED, {"conversation": conversation_id})).first() is not None:
            raise IdTaken("conversation_id")
        return open_conversation(created, self._keyring)

    async def conversation(self, conversation_id: uuid.UUID, owner: str, lock: bool = False) -> Conversation | None:
        """The owner's conversation. `lock`: until the transaction ends, nobody else writes to it. Raises DataLoss."""
        query, where = _READ_LOCKED if lock else _READ, {"conversation": conversation_id, "user": owner}
        row = (await self._connection.execute(query, where)).mappings().first()
        return None if row is None else open_conversation(row, self._keyring)

    async def lock(self, conversation_id: uuid.UUID, owner: str) -> bool:
        """Lock the owner's conversation as `conversation` does, whether it opens or not; False when it isn't there."""
        where = {"conversation": conversation_id, "user": owner}
        return (await self._connection.execute(_READ_LOCKED, where)).first() is not None

    async def conversations(
        self, owner: str, before: tuple[datetime, uuid.UUID] | None, limit: int
    ) -> list[Conversation]:
        """The owner's conversations, the one that changed last in front. Raises DataLoss."""
        columns = tables.conversation.c
        query = select(tables.conversation).where(columns.owner == owner)
        if before is not None:
            query = query.where(tuple_(columns.updated_at, columns.id) < tuple_(*before))
        query = query.order_by(columns.updated_at.desc(), columns.id.desc()).limit(limit)
        return [open_conversation(row, self._keyring) for row in (await self._connection.execute(query)).mappings()]

    async def change_conversation(
        self,
        conversation: Conversation,
        title: str | None = None,
        mode: tuple[str, ModeSource] | None = None,
        active_node_id: str | None = None,
    ) -> Conversation:
        """Change what isn't None, and when the conversation last changed; as it is then. Raises DataLoss."""
        values: dict[str, object] = {}
        if title is not None:
            place = title_place(conversation.id, conversation.owner)
            values["title"] = conversation.key.seal(place, title.encode())
        if mode is not None:
            values["mode"], values["mode_source"] = mode
        if active_node_id is not None:
            values["active_node_id"] = active_node_id
        changed = await self._connection.execute(_CHANGE, {"conversation": conversation.id, **values})
        return open_conversation(changed.mappings().one(), self._keyring)

    async def delete_conversation(self, conversation_id: uuid.UUID, owner: str) -> bool:
        """Delete the owner's conversation, with its key and all that hangs on it; False when it isn't there.

        Its id and owner are remembered. True, too, when the owner had deleted it before.
        """
        columns = tables.deleted_conversation.c
        gone = (
            delete(tables.conversation)
            .where(tables.conversation.c.id == conversation_id, tables.conversation.c.owner == owner)
            .returning(tables.conversation.c.id, tables.conversation.c.owner, func.now())
            .cte("gone")
        )
        deleted = await self._connection.execute(
            insert(tables.deleted_conversation).from_select(["id", "owner", "deleted_at"], select(gone))
        )
        if deleted.rowcount > 0:
            return True
        query = select(columns.id).where(columns.id == conversation_id, columns.owner == owner)
        return (await self._connection.execute(query)).first() is not None

    async def add_question(self, conversation: Conversation, start: Start, node_id: str) -> bool:
        """Store a user's message, which continues a node, at the end; False when its id is in use."""
        return await self._add(
            conversation, start.message_id, Author.USER, start.message, start.run_id, node_id=node_id
        )

    async def add_answer(
        self, conversation: Conversation, answer: Answer, run_id: uuid.UUID, reply_to: uuid.UUID, tokens: int
    ) -> bool:
        """Store a run's answer at the end; False when its id is in use."""
        return await self._add(
            conversation,
            answer.message_id,
            Author.ASSISTANT,
            answer.content,
            run_id,
            reply_to=reply_to,
            node_id=answer.node_id,
            model=answer.model,
            tokens=tokens,
        )

    async def messages(self, conversation: Conversation, after: int, limit: int) -> tuple[list[Message], int | None]:
        """A page of messages after a position, and the position to go on after; None: this was the last page.

        Raises DataLoss.
        """
        columns = tables.message.c
        sizes = (
            await self._connection.execute(
                select(columns.position, func.octet_length(columns.content))
                .where(columns.conversation_id == conversation.id, columns.position > after)
                .order_by(columns.position)
                .limit(limit + 1)
            )
        ).all()
        count, size = 0, 0
        for _, length in sizes[:limit]:
            size += length
            if count > 0 and size > PAGE_BYTES:
                break
            count += 1
        if count == 0:
            return [], None
        last: int = sizes[count - 1][0]
        query = (
            _messages(conversation).where(columns.position > after, columns.position <= last).order_by(columns.position)
        )
        rows = (await self._connection.execute(query)).mappings()
        return [open_message(row, conversation) for row in rows], last if len(sizes) > count else None

    async def messages_along(self, conversation: Conversation, node_ids: Iterable[str]) -> list[Message]:
        """The answers that stand at these nodes, each with its question, the oldest in front. Raises DataLoss."""
        columns = tables.message.c
        answers = (columns.conversation_id == conversation.id, columns.role == Author.ASSISTANT)
        here = and_(*answers, columns.node_id == func.any(list(node_ids)))
        questions = select(columns.reply_to).where(here)
        query = _messages(conversation).where(or_(here, columns.id.in_(questions))).order_by(columns.position)
        return [open_message(row, conversation) for row in (await self._connection.execute(query)).mappings()]

    async def unknown_key(self, known: Sequence[str]) -> str | None:
        """The id of a master key that a row needs and that isn't among these."""
        column = tables.conversation.c.key_id
        query = select(column).where(column.not_in(known)).limit(1)
        return (await self._connection.execute(query)).scalar()

    async def _add(
        self,
        conversation: Conversation,
        message_id: uuid.UUID,
        author: Author,
        content: str,
        run_id: uuid.UUID,
        *,
        node_id: str,
        reply_to: uuid.UUID | None = None,
        model: str = "",
        tokens: int = 0,
    ) -> bool:
        row = {
            "id": message_id,
            "conversation": conversation.id,
            "run_id": run_id,
            "reply_to": reply_to,
            "role": author,
            "node_id": node_id,
            "content": conversation.key.seal(content_place(message_id, conversation.owner), content.encode()),
            "model": model,
            "tokens": tokens,
        }
        added = await self._connection.execute(_ADD, row)
        return added.first() is not None


def _messages(conversation: Conversation) -> Select[Any]:
    run_of_answer = and_(tables.run.c.id == tables.message.c.run_id, tables.message.c.role == Author.ASSISTANT)
    return (
        select(tables.message, tables.run, is_partial(), tables.message.c.node_id.label("answer_node_id"))
        .outerjoin(tables.run, run_of_answer)
        .where(tables.message.c.conversation_id == conversation.id)
    )
