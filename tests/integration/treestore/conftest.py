"""Treestore on a database of its own, served twice over real sockets, as two replicas."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import grpc
import pytest
from lintello.treestore.v1.treestore_pb2_grpc import add_TreeStoreServiceServicer_to_server

from kit.database import Database, migrate
from kit.identity import Verifier
from kit.serve import OPTIONS, Guard, Service
from services.treestore.errors import ERRORS
from services.treestore.paging import PageTokens
from services.treestore.sealing import Keyring
from services.treestore.servicer import ACCESS, RPC_SERVICE, Servicer
from services.treestore.store import Store
from services.treestore.tables import MIGRATIONS, SCHEMA
from tests.integration.treestore.client import Client
from tests.servers.database import new_database
from tests.servers.identity import Keys, keys

ENCRYPTION_KEYS = f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}"


@pytest.fixture(scope="session")
async def url(database_url: str) -> AsyncIterator[str]:
    """A database with treestore's tables."""
    async with new_database(database_url) as url:
        await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
        yield url


@pytest.fixture(scope="session")
def identity() -> Keys:
    """The keys of gateway and engine."""
    return keys()


@asynccontextmanager
async def replica(url: str, identity: Keys) -> AsyncIterator[tuple[str, Store]]:
    """Treestore, serving: its address, and its store."""
    keyring, database = Keyring(ENCRYPTION_KEYS), Database(url)
    store = Store(database, keyring)
    servicer = Servicer(store, PageTokens(keyring.page_keys))
    service = Service(
        name="treestore",
        address="127.0.0.1:0",
        rpc_services=(RPC_SERVICE,),
        add=lambda server: add_TreeStoreServiceServicer_to_server(servicer, server),
        access=ACCESS,
        errors=ERRORS,
        verifier=Verifier(identity.public, "treestore"),
        drain_seconds=1,
    )
    server = grpc.aio.server(interceptors=[Guard(service)], options=OPTIONS)
    service.add(server)
    port = server.add_insecure_port(service.address)
    await server.start()
    try:
        yield f"127.0.0.1:{port}", store
    finally:
        await server.stop(None)
        await database.close()


@pytest.fixture(scope="session")
async def first(url: str, identity: Keys) -> AsyncIterator[tuple[str, Store]]:
    """One replica."""
    async with replica(url, identity) as running:
        yield running


@pytest.fixture(scope="session")
async def second(url: str, identity: Keys) -> AsyncIterator[tuple[str, Store]]:
    """Another replica on the same database."""
    async with replica(url, identity) as running:
        yield running


@pytest.fixture
async def alice(first: tuple[str, Store], identity: Keys) -> AsyncIterator[Client]:
    """A user nobody has seen before."""
    client = Client(first[0], identity)
    yield client
    await client.close()


@pytest.fixture
async def bob(first: tuple[str, Store], identity: Keys) -> AsyncIterator[Client]:
    """Another user nobody has seen before."""
    client = Client(first[0], identity)
    yield client
    await client.close()


@pytest.fixture
async def alice_elsewhere(alice: Client, second: tuple[str, Store], identity: Keys) -> AsyncIterator[Client]:
    """The same user on the other replica."""
    client = Client(second[0], identity, alice.caller.user)
    yield client
    await client.close()


@pytest.fixture
async def sql(url: str) -> AsyncIterator[asyncpg.Connection]:
    """The database, as an intruder or an operator has it."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()
