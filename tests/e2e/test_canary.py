"""Content never leaks (DATA): words planted in question, answer, steps and title are found nowhere at rest.

The same search must find words that were written in the clear on purpose, or it proves nothing.
"""

import os
import secrets
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import asyncpg
import httpx
import pytest
from redis.asyncio import Redis

from cli.local.stack import Stack, StackOptions
from cli.trial.server import TrialServer
from tests.e2e.client import HARD, User, answer_in
from tests.e2e.conftest import nothing
from tests.e2e.shell import let_servers_in


@pytest.fixture
async def own_stack(trial: TrialServer, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """A stack whose servers are embedded, so that their files can be read."""
    folder = tmp_path_factory.mktemp("canary")
    let_servers_in(folder)
    environment = {"PATH": os.environ["PATH"], "LINTELLO_LLM_BASE_URL": trial.base_url}
    async with Stack(StackOptions(nothing, nothing, data_dir=folder, environment=environment)) as running:
        yield running


def word() -> str:
    """A word nobody writes by chance."""
    return f"canari{secrets.token_hex(8)}"


async def test_planted_words_are_found_nowhere_at_rest(own_stack: Stack, trial: TrialServer) -> None:
    question, step, answer, title = word(), word(), word(), word()
    trial.reset()
    trial.set_faults(
        [
            {"match": {"role": "execute"}, "times": 1, "action": {"text": f"{step}\n\nDétail {step}"}},
            {"match": {"role": "synthesize"}, "times": 1, "action": {"text": f"Réponse {answer}"}},
            {"match": {"role": "conversation"}, "times": 1, "action": {"error_in_200": True, "text": answer}},
        ]
    )
    async with httpx.AsyncClient(base_url=own_stack.url, timeout=60) as http:
        user = User(http)
        events = await user.ask(f"{HARD} {question}", mode="recherche")
        assert answer in answer_in(events)
        conversation = events[0]["conversation_id"]
        await http.patch(f"/api/conversations/{conversation}", json={"title": title})
        await user.ask(f"Encore {question}", conversation_id=conversation, thinking="off")
        refused = await http.post("/api/chat", json={"message": question, "unknown": question})
        assert refused.status_code == 400
        assert question not in refused.text
    control = word()
    await _write_in_the_clear(own_stack, control)
    found = [place async for place in _places(own_stack, [question, step, answer, title])]
    assert found == []
    controls = [place async for place in _places(own_stack, [control])]
    for kind in ("public.scratch", "pg_wal", "appendonly", "logs"):
        assert any(kind in place for place in controls), f"the search finds nothing in {kind}"
    trial.reset()


async def _write_in_the_clear(stack: Stack, control: str) -> None:
    connection = await asyncpg.connect(stack.database_url)
    await connection.execute("CREATE TABLE scratch (text text)")
    await connection.execute("INSERT INTO scratch VALUES ($1)", control)
    await connection.close()
    async with Redis.from_url(stack.redis_url) as redis:
        await redis.set("scratch", control)
    (stack.folder / "logs" / "scratch.log").write_text(control)


async def _places(stack: Stack, words: Iterable[str]) -> AsyncIterator[str]:
    """Every column of every table, decoded, and every file under the data folder, that holds one of the words."""
    needles = [needle.encode() for needle in words]
    connection = await asyncpg.connect(stack.database_url)
    tables = await connection.fetch(
        "SELECT table_schema AS s, table_name AS t FROM information_schema.tables "
        "WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
    )
    assert len(tables) >= 5
    for schema, table in ((row["s"], row["t"]) for row in tables):
        for record in await connection.fetch(f'SELECT * FROM "{schema}"."{table}"'):
            for column, value in record.items():
                raw = value if isinstance(value, bytes) else str(value).encode()
                if any(needle in raw for needle in needles):
                    yield f"{schema}.{table}.{column}"
    await connection.close()
    for path in _files(stack.folder):
        if any(needle in path.read_bytes() for needle in needles):
            yield str(path)


def _files(folder: Path) -> Iterable[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_socket()]
