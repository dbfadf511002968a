"""Rows to records and back: where what is sealed is opened and sealed, each value for its own place."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

import orjson
from sqlalchemy import ColumnElement, RowMapping, and_, func, or_

from services.treestore import tables
from services.treestore.errors import DataLoss
from services.treestore.records import (
    Author,
    Conversation,
    Details,
    Message,
    ModeSource,
    Run,
    RunStatus,
    Usage,
)
from services.treestore.sealing import DataKey, Keyring, Place, Wrapped

STALE = timedelta(seconds=15)
"""A run whose heartbeat is older than this is given up."""


def is_stale() -> ColumnElement[bool]:
    """SQL: the run goes on, but nobody has said so for too long, by the database's clock."""
    return and_(tables.run.c.status == RunStatus.RUNNING, tables.run.c.heartbeat_at < func.now() - STALE)


def is_alive() -> ColumnElement[bool]:
    """SQL: the run goes on, and somebody has said so lately."""
    return and_(tables.run.c.status == RunStatus.RUNNING, tables.run.c.heartbeat_at >= func.now() - STALE)


def is_partial() -> ColumnElement[bool]:
    """SQL, labelled `partial`: it ended other than done, its heartbeat is stale, or a step failed on the way."""
    ended_otherwise = tables.run.c.status.not_in((RunStatus.RUNNING, RunStatus.DONE))
    return or_(ended_otherwise, tables.run.c.step_failed, is_stale()).label("partial")


def title_place(conversation_id: uuid.UUID, owner: str) -> Place:
    """Where a title stands."""
    return Place("conversation", "title", str(conversation_id), owner)


def content_place(message_id: uuid.UUID, owner: str) -> Place:
    """Where a message's text stands."""
    return Place("message", "content", str(message_id), owner)


def details_place(run_id: uuid.UUID, owner: str) -> Place:
    """Where a run's details stand."""
    return Place("run", "details", str(run_id), owner)


def open_conversation(row: RowMapping, keyring: Keyring) -> Conversation:
    """A conversation from its row. Raises DataLoss."""
    columns = tables.conversation.c
    conversation_id, owner = row[columns.id], row[columns.owner]
    key = keyring.unwrap(str(conversation_id), owner, Wrapped(row[columns.key_id], row[columns.dek]))
    return Conversation(
        id=conversation_id,
        owner=owner,
        title=key.open(title_place(conversation_id, owner), row[columns.title]).decode(),
        mode=row[columns.mode],
        mode_source=ModeSource(row[columns.mode_source]),
        active_node_id=row[columns.active_node_id],
        created_at=row[columns.created_at],
        updated_at=row[columns.updated_at],
        key=key,
    )


def open_run(row: RowMapping, key: DataKey) -> Run:
    """A run from its row, which has `partial` and `answer_node_id` (or null) too. Raises DataLoss."""
    columns = tables.run.c
    return Run(
        id=row[columns.id],
        conversation_id=row[columns.conversation_id],
        status=RunStatus(row[columns.status]),
        partial=row["partial"],
        abandoned=row[columns.abandoned],
        message_id=row[columns.message_id],
        answer_id=row[columns.answer_id],
        answer_node_id=row["answer_node_id"] or "",
        parent_node_id=row[columns.parent_node_id],
        last_seq=row[columns.last_seq],
        usage=usage_from_json(row[columns.usage]),
        details=_open_details(row, key),
        heartbeat_at=row[columns.heartbeat_at],
        created_at=row[columns.created_at],
        ended_at=row[columns.ended_at],
    )


def open_message(row: RowMapping, conversation: Conversation) -> Message:
    """A message from its row, which has its run's columns when it is an answer. Raises DataLoss."""
    columns = tables.message.c
    sealed = row[columns.content]
    return Message(
        id=row[columns.id],
        author=Author(row[columns.role]),
        content=conversation.key.open(content_place(row[columns.id], conversation.owner), sealed).decode(),
        reply_to=row[columns.reply_to],
        run_id=row[columns.run_id],
        node_id=row[columns.node_id],
        model=row[columns.model],
        tokens=row[columns.tokens],
        created_at=row[columns.created_at],
        run=open_run(row, conversation.key) if row[tables.run.c.id] is not None else None,
    )


def seal_details(details: Details, run_id: uuid.UUID, conversation: Conversation) -> bytes:
    """A run's details for their column."""
    return conversation.key.seal(details_place(run_id, conversation.owner), orjson.dumps(details))


def usage_to_json(usage: Sequence[Usage]) -> list[dict[str, Any]]:
    """Usage for its column."""
    return [asdict(one) for one in usage]


def usage_from_json(column: Sequence[dict[str, Any]]) -> tuple[Usage, ...]:
    """Usage from its column."""
    return tuple(Usage(**one) for one in column)


def details_for_books(details: Details) -> dict[str, Any]:
    """What the books need of a run's details, for a column that isn't sealed: nothing that a model or a user wrote."""
    return {
        "mode": details.mode,
        "schema": details.schema,
        "node_count": details.node_count,
        "fallbacks": details.fallbacks,
        "retries": details.retries,
        "cost_eur": details.cost_eur,
        "duration_ms": details.duration_ms,
    }


def _open_details(row: RowMapping, key: DataKey) -> Details:
    sealed = row[tables.run.c.details]
    if sealed is None:
        return Details()
    place = details_place(row[tables.run.c.id], row[tables.run.c.owner])
    try:
        return Details(**orjson.loads(key.open(place, sealed)))
    except (ValueError, TypeError):
        raise DataLoss(place.table, place.column, place.row) from None
