"""The treestore service: settings, keys, store, servicer, serve."""

import asyncio

from lintello.treestore.v1.treestore_pb2_grpc import add_TreeStoreServiceServicer_to_server

from kit.database import Database
from kit.identity import Verifier
from kit.serve import Service, run, serve
from kit.settings import load
from services.treestore.errors import ERRORS
from services.treestore.janitor import keep_sweeping
from services.treestore.paging import PageTokens
from services.treestore.readiness import check_keys
from services.treestore.sealing import Keyring
from services.treestore.servicer import ACCESS, RPC_SERVICE, Servicer
from services.treestore.settings import TreestoreSettings
from services.treestore.store import Store


async def main() -> None:
    """Serve until told to stop."""
    settings = load(TreestoreSettings)
    keyring = Keyring(settings.encryption_keys.get_secret_value())
    database = Database(settings.database_url.get_secret_value())
    store = Store(database, keyring)
    servicer = Servicer(store, PageTokens(keyring.page_keys))
    service = Service(
        name="treestore",
        address=settings.treestore_address,
        rpc_services=(RPC_SERVICE,),
        add=lambda server: add_TreeStoreServiceServicer_to_server(servicer, server),
        access=ACCESS,
        errors=ERRORS,
        verifier=Verifier(settings.internal_public_keys, "treestore"),
        drain_seconds=settings.drain_seconds,
    )
    try:
        await check_keys(store, keyring)
        tasks = (asyncio.create_task(serve(service)), asyncio.create_task(keep_sweeping(store)))
        try:
            # A janitor that fails ends the process: nobody would notice that runs aren't closed any more.
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
    finally:
        await database.close()


if __name__ == "__main__":
    run("treestore", main)
