"""What must hold before treestore serves: the tables are there, and so is every master key that a row needs."""

import asyncio

from sqlalchemy.exc import DBAPIError

from kit import telemetry
from kit.database import as_bad_setting
from kit.settings import BadSetting
from services.treestore.errors import StoreAway
from services.treestore.sealing import Keyring
from services.treestore.store import Store
from services.treestore.tables import SCHEMA


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
            if (problem := as_bad_setting(error, SCHEMA)) is not None:
                raise problem from None
            raise
    if unknown is not None:
        raise BadSetting(
            f"LINTELLO_ENCRYPTION_KEYS: the key {unknown} is missing, and conversations are sealed with it"
        )
