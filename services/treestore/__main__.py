"""The treestore service: settings, keys, store, servicer, serve."""

from lintello.treestore.v1.treestore_pb2_grpc import add_TreeStoreServiceServicer_to_server

from kit.database import Database
from kit.identity import Verifier
from kit.serve import Service, run, serve
from kit.settings import load
from services.treestore.errors import ERRORS
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
        metrics_port=settings.metrics_port,
    )
    try:
        await check_keys(store, keyring)
        await serve(service)
    finally:
        await database.close()


if __name__ == "__main__":
    run("treestore", main)
