"""What must hold before treestore serves: the tables are there, and so is every master key that a row needs."""

import asyncio

from asyncpg.exceptions import InvalidAuthorizationSpecificationError, InvalidCatalogNameError, UndefinedTableError
from sqlalchemy.exc import DBAPIError

from kit import telemetry
from kit.settings import BadSetting
from services.treestore.errors import StoreAway
from services.treestore.sealing import Keyring
from services.treestore.store import Store, driver_error

_PROBLEMS = {
    UndefinedTableError: "it has no treestore tables; run lintello migrate",
    InvalidCatalogNameError: "there is no such database",
    InvalidAuthorizationSpecificationError: "the server refuses this user or password",
}


async def check_keys(store: Store, keyring: Keyring, wait: float = 0.5) -> None:
    """Raise BadSetting when rows need a master key that isn't there, naming it, or when the tables aren't there.

    While PostgreSQL doesn't answer, asks again every `wait` seconds: services start in any order.
    """
    while True:
        try:
            unknown = await store.transact(lambda tx: tx.conversations.unknown_key(keyring.key_ids))
            break
        except StoreAway:
            telemetry.log.warning("waiting_for_database")
            await asyncio.sleep(wait)
        except DBAPIError as error:
            for kind, problem in _PROBLEMS.items():
                if isinstance(driver_error(error), kind):
                    raise BadSetting(f"LINTELLO_DATABASE_URL: {problem}") from None
            raise
    if unknown is not None:
        raise BadSetting(
            f"LINTELLO_ENCRYPTION_KEYS: the key {unknown} is missing, and conversations are sealed with it"
        )
