"""The books: what each run used, in PostgreSQL, once a run."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from kit import telemetry
from kit.database import MAYBE_AWAY, Database, as_bad_setting, is_away
from services.quota.errors import UsageUnavailable
from services.quota.tables import SCHEMA, usage_log

ANSWER_SECONDS = 2
"""How long PostgreSQL may take, connecting included. To give up a connection that hangs takes SQLAlchemy 2 s more; both
together are less than the 5 s that callers wait."""
T = TypeVar("T")


class Ending(StrEnum):
    """How a run ended."""

    DONE = "done"
    PARTIAL = "partial"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True)
class ModelUsage:
    """What a run used of one model, in tokens."""

    input_tokens: int
    output_tokens: int
    estimated: bool
    """The provider didn't say."""


@dataclass(frozen=True)
class RunUsage:
    """What is recorded of a run."""

    run_id: UUID
    ending: Ending
    mode: str
    """A slug; empty when it ran in none."""
    schema: str
    """Empty for a classic answer."""
    node_count: int
    usage: Mapping[str, ModelUsage]
    """By the model's name."""
    cost_eur: float
    fallbacks: int
    retries: int
    partial: bool
    duration_ms: int
    started_at: datetime

    @property
    def estimated(self) -> bool:
        """Whether some of its usage is an estimate."""
        return any(used.estimated for used in self.usage.values())


class UsageLog:
    """The books of one database. Every method raises UsageUnavailable when PostgreSQL doesn't answer in time."""

    def __init__(self, database: Database) -> None:
        """Connects when it is first asked, so that the order of starts doesn't matter."""
        self._database = database
        self._reach = telemetry.Reach("database")

    async def record(self, run: RunUsage, user: str, subscription: str) -> bool:
        """Note a run of this user's. False: it was noted before, and nothing changes."""
        row = {
            "run_id": run.run_id,
            "user": user,
            "subscription": subscription,
            "status": run.ending.value,
            "mode": run.mode,
            "schema": run.schema,
            "node_count": run.node_count,
            "usage": {model: asdict(used) for model, used in run.usage.items()},
            "cost_eur": run.cost_eur,
            "fallbacks": run.fallbacks,
            "retries": run.retries,
            "partial": run.partial,
            "estimated": run.estimated,
            "duration_ms": run.duration_ms,
            "started_at": run.started_at,
            "at": func.now(),
        }
        statement = insert(usage_log).values(row).on_conflict_do_nothing().returning(usage_log.c.run_id)

        async def work(connection: AsyncConnection) -> bool:
            return (await connection.execute(statement)).first() is not None

        return await self._do(work)

    async def check(self) -> None:
        """Raise BadSetting when PostgreSQL answers but there are no books in it."""

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(select(usage_log.c.run_id).limit(1))

        try:
            await self._do(work)
        except DBAPIError as error:
            problem = as_bad_setting(error, SCHEMA)
            if problem is None:
                raise
            raise problem from None

    async def _do(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                try:
                    result = await self._once(work)
                except UsageUnavailable:
                    # A connection that died while it was idle; the pool has new ones.
                    result = await self._once(work)
        except (UsageUnavailable, TimeoutError) as error:
            self._reach.lost(error)
            raise UsageUnavailable from None
        self._reach.found()
        return result

    async def _once(self, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        try:
            async with self._database.transaction() as connection:
                return await work(connection)
        except MAYBE_AWAY as error:
            if is_away(error):
                raise UsageUnavailable from None
            raise
