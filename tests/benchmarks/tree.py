"""How long a durable sealed append takes, by the size of the tree: `python -m tests.benchmarks.tree`.

Real PostgreSQL with fsync on: the server of LINTELLO_TEST_DATABASE_URL, else an embedded one. Promised: 2 ms at the
median, at 10 nodes and at 300.
"""

import asyncio
import base64
import os
import secrets
import statistics
import time
import uuid
from contextlib import AsyncExitStack
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import uvloop

from kit.database import Database, migrate
from services.treestore import ledger
from services.treestore.records import Start
from services.treestore.sealing import Keyring
from services.treestore.store import Store
from services.treestore.tables import MIGRATIONS, SCHEMA
from services.treestore.tree import Node, Role, Status
from tests.servers.embedded import embedded_postgres

OWNER = "benchmark"
SIZES = (10, 300, 2_000)
APPENDS = 200
CONTENT = "Une étape de réflexion, avec ce qu'un modèle en écrit d'ordinaire. " * 30


async def main() -> None:
    """Measure and print a table."""
    async with AsyncExitStack() as stack:
        server = os.environ.pop("LINTELLO_TEST_DATABASE_URL", None)
        if server is None:
            server = (await stack.enter_async_context(embedded_postgres())).url
        name = f"lintello_benchmark_{secrets.token_hex(8)}"
        fsync = await _ask(server, f'CREATE DATABASE "{name}"')
        try:
            url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
            await asyncio.to_thread(migrate, url, MIGRATIONS, SCHEMA)
            print(f"PostgreSQL: {fsync}; {APPENDS} appends of one node of {len(CONTENT.encode())} bytes at each size")
            print(f"{'nodes':>6} {'p50 ms':>8} {'p95 ms':>8} {'max ms':>8}")
            for size in SIZES:
                times = await _measure(url, size)
                cuts = statistics.quantiles(times, n=20)
                print(f"{size:>6} {statistics.median(times):>8.2f} {cuts[18]:>8.2f} {max(times):>8.2f}")
        finally:
            await _ask(server, f'DROP DATABASE "{name}" WITH (FORCE)')


async def _measure(url: str, size: int) -> list[float]:
    """Milliseconds of each append to trees of about `size` nodes."""
    database = Database(url)
    try:
        store = Store(database, Keyring(f"k1:{base64.b64encode(secrets.token_bytes(32)).decode()}"))
        times: list[float] = []
        while len(times) < APPENDS:
            start = Start(uuid.uuid4(), uuid.uuid4(), uuid.uuid4(), True, "question", "title", None)
            await store.transact(lambda tx, start=start: ledger.start_run(tx, OWNER, start))  # type: ignore[misc]
            nodes = [_node(start.run_id, number) for number in range(size + 20)]
            await _append(store, start.run_id, nodes[:size])
            for node in nodes[size:]:
                began = time.perf_counter()
                await _append(store, start.run_id, [node])
                times.append((time.perf_counter() - began) * 1000)
        return times
    finally:
        await database.close()


async def _append(store: Store, run_id: uuid.UUID, nodes: list[Node]) -> None:
    await store.transact(lambda tx: ledger.append_nodes(tx, OWNER, run_id, nodes))


def _node(run_id: uuid.UUID, number: int) -> Node:
    return Node(
        id=f"n{number}",
        role=Role.EXECUTE,
        status=Status.EXPLORED,
        run_id=str(run_id),
        parents=(f"n{number - 1}",) if number else (),
        summary="Une étape",
        content=CONTENT,
        input_tokens=900,
        output_tokens=500,
        model="small",
    )


async def _ask(url: str, statement: str) -> str:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
        settings = [f"{name} {await connection.fetchval(f'SHOW {name}')}" for name in ("fsync", "synchronous_commit")]
        return ", ".join(settings)
    finally:
        await connection.close()


if __name__ == "__main__":
    uvloop.run(main())
