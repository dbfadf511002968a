"""The service as a process: what stops its start, and PostgreSQL going away under it."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from tests.integration.treestore.client import Client, new_id, node
from tests.integration.treestore.client import refused as refused_call
from tests.integration.treestore.conftest import ENCRYPTION_KEYS
from tests.servers.database import new_database
from tests.servers.identity import Keys
from tests.servers.process import ServiceProcess, refused, running


def settings(url: str, identity: Keys, encryption_keys: str = ENCRYPTION_KEYS) -> dict[str, str]:
    return {
        "DATABASE_URL": url,
        "ENCRYPTION_KEYS": encryption_keys,
        "INTERNAL_PUBLIC_KEYS": identity.public,
    }


def key(key_id: str, length: int = 32) -> str:
    return f"{key_id}:{base64.b64encode(secrets.token_bytes(length)).decode()}"


@pytest.fixture(scope="module")
async def process(url: str, identity: Keys) -> AsyncIterator[ServiceProcess]:
    async with running("treestore", settings(url, identity)) as process:
        yield process


async def test_a_question_travels_to_its_answer_and_no_word_of_it_to_the_log(
    process: ServiceProcess, identity: Keys
) -> None:
    client = Client(process.address, identity)
    try:
        started = await client.start(message="canari-journal", title="canari-journal")
        await client.append(started.run.run_id, node("n1", content="canari-journal"))
        await client.answer(started.run.run_id, "n2", "n1", content="canari-journal")
        assert len((await client.tree(started.conversation.conversation_id)).nodes) == 2
        # One that is refused is told in the log: by then what went before could be there too.
        assert await refused_call(client.tree(new_id())) == "NOT_FOUND"
    finally:
        await client.close()
    async with asyncio.timeout(10):
        while not any("GetTree" in line for line in process.lines):
            await asyncio.sleep(0.02)
    assert not any("canari" in line for line in process.lines)


async def test_a_master_key_that_rows_need_stops_the_start_by_name(alice: Client, url: str, identity: Keys) -> None:
    await alice.create()
    code, output = await refused("services.treestore", settings(url, identity, key("another")))
    assert (code, output.count("\n")) == (2, 1), output
    assert output.startswith("LINTELLO_ENCRYPTION_KEYS: the key k1 is missing")


async def test_a_key_of_the_wrong_length_stops_the_start_without_being_quoted(url: str, identity: Keys) -> None:
    bad = key("k1", length=31)
    code, output = await refused("services.treestore", settings(url, identity, bad))
    assert (code, output.count("\n")) == (2, 1), output
    assert output.startswith("LINTELLO_ENCRYPTION_KEYS: ")
    assert bad.partition(":")[2] not in output


async def test_a_database_without_tables_stops_the_start_and_says_what_to_do(database_url: str, identity: Keys) -> None:
    async with new_database(database_url) as url:
        code, output = await refused("services.treestore", settings(url, identity))
    assert (code, output.count("\n")) == (2, 1), output
    assert "lintello migrate" in output


@pytest.mark.parametrize(("part", "said"), [("database", "no such database"), ("user", "refuses this user")])
async def test_a_database_or_user_that_is_not_there_stops_the_start(
    url: str, identity: Keys, part: str, said: str
) -> None:
    parts = urlsplit(url)
    host = f"{parts.hostname}:{parts.port}"
    bad = parts._replace(path="/nowhere") if part == "database" else parts._replace(netloc=f"nobody:x@{host}")
    code, output = await refused("services.treestore", settings(urlunsplit(bad), identity))
    assert (code, output.count("\n")) == (2, 1), output
    assert said in output


async def test_connections_that_were_cut_are_not_noticed(process: ServiceProcess, url: str, identity: Keys) -> None:
    client = Client(process.address, identity)
    intruder = await asyncpg.connect(url)
    try:
        started = await client.start()
        for index in range(3):
            await client.append(started.run.run_id, node(f"n{index}"))
            await intruder.execute(
                """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE datname = current_database() AND pid <> pg_backend_pid()"""
            )
        await client.append(started.run.run_id, node("last"))
        tree = await client.tree(started.conversation.conversation_id)
        assert [each.id for each in tree.nodes] == ["n0", "n1", "n2", "last"]
    finally:
        await intruder.close()
        await client.close()
