"""PostgreSQL that isn't there, and one that dies under the service: a server of the test's own."""

import asyncio
import os
import signal

from cli.local.ports import free_port
from kit.database import migrate
from kit.errors import RemoteError
from services.treestore.tables import MIGRATIONS, SCHEMA
from tests.integration.treestore.client import Client, node, refused
from tests.integration.treestore.conftest import replica
from tests.servers.embedded import embedded_postgres
from tests.servers.identity import Keys

PATIENCE_SECONDS = 30


async def test_without_postgresql_a_call_is_unavailable(identity: Keys) -> None:
    url = f"postgresql://nobody@127.0.0.1:{free_port()}/nowhere"
    async with replica(url, identity) as (address, _):
        client = Client(address, identity)
        try:
            reasons = [await refused(client.create()), await refused(client.unsettled())]
        finally:
            await client.close()
    assert reasons == ["UNAVAILABLE", "UNAVAILABLE"]


async def test_a_postgresql_that_was_killed_loses_nothing_and_is_found_again(identity: Keys) -> None:
    async with embedded_postgres() as server:
        await asyncio.to_thread(migrate, server.url, MIGRATIONS, SCHEMA)
        async with replica(server.url, identity) as (address, _):
            client = Client(address, identity)
            try:
                started = await client.start(message="Avant la panne")
                await client.append(started.run.run_id, node("before"))
                os.kill(server.pid, signal.SIGKILL)
                await append_until_taken(client, started.run.run_id)
                tree = await client.tree(started.conversation.conversation_id)
                messages = await client.messages(started.conversation.conversation_id)
            finally:
                await client.close()
    assert [each.id for each in tree.nodes] == ["before", "after"]
    assert [each.content for each in messages.messages] == ["Avant la panne"]


async def append_until_taken(client: Client, run_id: str) -> None:
    """Repeat one append as its caller would; every refusal on the way is UNAVAILABLE."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                await client.append(run_id, node("after", "before"))
            except RemoteError as error:
                if error.reason != "UNAVAILABLE":
                    raise
                await asyncio.sleep(0.1)
            else:
                return
