"""Transactions: what a call does with the database is done whole, once, and survives one lost connection."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from asyncpg.exceptions import DeadlockDetectedError, InvalidCachedStatementError, SerializationError
from sqlalchemy.exc import DBAPIError

from kit import telemetry
from kit.database import MAYBE_AWAY, Database, driver_error, is_away
from services.treestore.books_repository import Books
from services.treestore.errors import DataLoss, StoreAway
from services.treestore.outlines import Outlines
from services.treestore.repository import Repository
from services.treestore.run_repository import RunRepository
from services.treestore.sealing import Keyring
from services.treestore.tree_repository import TreeRepository

T = TypeVar("T")

# The last one: the tables were migrated while the system runs; the statement is prepared anew.
_AGAIN = (DeadlockDetectedError, SerializationError, InvalidCachedStatementError)


@dataclass(frozen=True)
class Transaction:
    """What can be read and written within one transaction."""

    conversations: Repository
    runs: RunRepository
    trees: TreeRepository
    books: Books


class Store:
    """The database, the keys, and the outlines of trees that are in use."""

    def __init__(self, database: Database, keyring: Keyring) -> None:
        self._database = database
        self._keyring = keyring
        self._outlines = Outlines()

    async def transact(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Do `work` in one transaction: all of it is kept, or, on any exception, none.

        After a lost connection it is done once more on a fresh one, so `work` must be fit to be repeated even when
        it was kept the first time and only the reply was lost. Raises StoreAway when that fails, too.
        """
        try:
            return await self._once(work)
        except StoreAway:
            return await self._once(work)

    async def _once(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        try:
            async with self._database.transaction() as connection:
                trees = TreeRepository(connection, self._outlines)
                transaction = Transaction(
                    Repository(connection, self._keyring),
                    RunRepository(connection, self._keyring),
                    trees,
                    Books(connection),
                )
                result = await work(transaction)
        except MAYBE_AWAY as error:
            again = isinstance(error, DBAPIError) and isinstance(driver_error(error), _AGAIN)
            if again or is_away(error):
                raise StoreAway from None
            raise
        except DataLoss as error:
            telemetry.log.error("data_loss", **error.metadata)
            raise
        if trees.written is not None:
            self._outlines.keep(*trees.written)
        return result
