"""A whole stack of real processes, on the session's database and Redis, with a model server that obeys the test."""

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from cli.local.stack import Stack, StackOptions
from cli.trial.server import TrialServer, serving
from gateway.tokens import mint_user_token
from tests.e2e.client import User, bearer
from tests.servers.database import new_database

LEASE_SECONDS = 9
"""Shorter than in production, where 30 is the default: a test waits for one to run out."""
SECRET = "a secret that is long enough for signing tokens in tests"


def nothing(*_: object) -> None:
    """Events and lines of a stack that a test has no use for."""


@pytest.fixture(scope="session")
async def trial() -> AsyncIterator[TrialServer]:
    """The trial model without delays, with faults on command."""
    async with serving(rate=0) as server:
        yield server


@pytest.fixture(scope="session")
async def stack(
    trial: TrialServer, database_url: str, redis_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    """The stack every end-to-end test talks to."""
    environment = {
        "PATH": os.environ["PATH"],
        "LINTELLO_REDIS_URL": redis_url,
        "LINTELLO_LLM_BASE_URL": trial.base_url,
        "LINTELLO_LLM_IDLE_SECONDS": "3",
        "LINTELLO_LEASE_SECONDS": str(LEASE_SECONDS),
        "LINTELLO_JWT_SECRET": SECRET,
    }
    folder: Path = tmp_path_factory.mktemp("stack")
    # A database of its own: other tests of the session take the tables away from theirs.
    async with new_database(database_url) as url:
        environment["LINTELLO_DATABASE_URL"] = url
        options = StackOptions(nothing, nothing, data_dir=folder, environment=environment)
        async with Stack(options) as running:
            yield running


@pytest.fixture
async def user(stack: Stack, trial: TrialServer) -> AsyncIterator[User]:
    """The user of dev mode; the model behaves until a test says otherwise, and again after it."""
    trial.reset()
    async with httpx.AsyncClient(base_url=stack.url, timeout=30) as http:
        yield User(http)
    trial.reset()


@pytest.fixture
async def user_called(stack: Stack) -> AsyncIterator[Callable[[str], User]]:
    """Other users, by name."""
    opened: list[httpx.AsyncClient] = []

    def named(name: str) -> User:
        token = mint_user_token(SECRET, name, "pro", (), "lintello", 600)
        opened.append(httpx.AsyncClient(base_url=stack.url, timeout=30, headers=bearer(token)))
        return User(opened[-1])

    yield named
    for http in opened:
        await http.aclose()
