"""The way into the books, in PostgreSQL: a run stands in `unsettled_run` from its end until its usage is recorded.

It is put there by the statement that ends it, so no end is missed, and it stays there when its conversation is
deleted, so that what it used is charged all the same.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from services.treestore import tables
from services.treestore.records import Details, RunStatus, Unsettled, Usage
from services.treestore.rows import STALE, details_for_books, is_partial, usage_from_json, usage_to_json

_run = tables.run.c
_unsettled = tables.unsettled_run.c


def closing(where: ColumnElement[bool], values: Mapping[str, Any]) -> ReturningInsert[Any]:
    """A statement that ends the run of a condition with these values and puts it on its way into the books.

    It takes the parameters of `used`. Its result is the run's row there, without usage and details; none when there is
    no such run.
    """
    closed = (
        update(tables.run)
        .where(where)
        .values(**values, usage=bindparam("used", type_=_run.usage.type), ended_at=func.now())
        .returning(
            _run.id,
            _run.conversation_id,
            _run.owner,
            _run.subscription,
            _run.status,
            is_partial(),
            _run.abandoned,
            _run.last_seq,
            _run.usage,
            _run.heartbeat_at,
            _run.created_at,
            _run.ended_at,
        )
        .cte("closed")
    )
    columns = ["run_id", *(column.name for column in closed.c if column.name != "id"), "details"]
    books = bindparam("for_books", type_=_unsettled.details.type)
    return (
        insert(tables.unsettled_run)
        .from_select(columns, select(*closed.c, books))
        .returning(*(column for column in _unsettled if column.name not in ("usage", "details")))
    )


def used(usage: Sequence[Usage], details: Details) -> dict[str, Any]:
    """What a run used, as parameters of `closing`."""
    return {"used": usage_to_json(usage), "for_books": details_for_books(details)}


_NOTE = (
    update(tables.run)
    .where(_run.id == bindparam("run"), _run.owner == bindparam("user"), _run.status != RunStatus.RUNNING)
    .where(_run.usage_recorded_at.is_(None))
    .values(usage_recorded_at=func.now())
)
_SETTLE = delete(tables.unsettled_run).where(
    _unsettled.run_id == bindparam("run"), _unsettled.owner == bindparam("user")
)


class Books:
    """Runs on their way into the books, within one transaction that the caller owns."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def unsettled(self, limit: int) -> list[Unsettled]:
        """Runs of all owners that have ended and aren't settled, the one that ended first in front.

        One that was ended in its engine's stead while that was still there comes when its heartbeat would be stale:
        until then its engine may settle it, with what it really used.
        """
        query = (
            select(tables.unsettled_run)
            .where(or_(_unsettled.abandoned.is_(False), _unsettled.heartbeat_at < func.now() - STALE))
            .order_by(_unsettled.ended_at, _unsettled.run_id)
            .limit(limit)
        )
        return [_open(dict(row)) for row in (await self._connection.execute(query)).mappings()]

    async def settle(self, run_id: uuid.UUID, owner: str) -> bool:
        """Note that the usage of the owner's run is recorded; False when it isn't on its way into the books."""
        of_run = {"run": run_id, "user": owner}
        await self._connection.execute(_NOTE, of_run)
        settled = await self._connection.execute(_SETTLE, of_run)
        return settled.rowcount > 0


def _open(row: dict[str, Any]) -> Unsettled:
    status, usage, details = (
        RunStatus(row.pop("status")),
        usage_from_json(row.pop("usage")),
        Details(**row.pop("details")),
    )
    return Unsettled(**row, status=status, usage=usage, details=details)
