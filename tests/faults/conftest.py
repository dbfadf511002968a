"""The stacks that break: one with one engine and gateway, one with two of each, started when they are first needed."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from tests.e2e.shell import let_servers_in
from tests.faults.replicas import REPLICAS
from tests.faults.site import Site, running

Sites = Callable[[int], Awaitable[Site]]


@pytest.fixture(scope="session")
async def sites(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sites]:
    """A site by its number of replicas, the same one for the whole session."""
    found: dict[int, Site] = {}
    async with AsyncExitStack() as opened:

        async def find(replicas: int) -> Site:
            if replicas not in found:
                folder = tmp_path_factory.mktemp("faults")
                let_servers_in(folder)
                found[replicas] = await opened.enter_async_context(running(folder, REPLICAS[replicas]))
            return found[replicas]

        yield find


@pytest.fixture
async def site(sites: Sites, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """A healthy stack without runs, whose model behaves until the test says otherwise; and so again after it."""
    found = await sites(request.param)
    await found.calm()
    yield found
    await found.calm()
