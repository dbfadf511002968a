"""A trial model in this process, and a client for it."""

from collections.abc import AsyncIterator

import httpx
import pytest

from cli.trial.server import TrialServer, serving


@pytest.fixture(scope="session")
async def running_trial() -> AsyncIterator[TrialServer]:
    async with serving() as server:
        yield server


@pytest.fixture
async def trial(running_trial: TrialServer) -> TrialServer:
    """The trial model, well-behaved and without memory."""
    running_trial.reset()
    return running_trial


@pytest.fixture
async def client(trial: TrialServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=trial.base_url, timeout=5, trust_env=False) as client:
        yield client
