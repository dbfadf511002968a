"""A gateway process in front of scripted services."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.integration.gateway.backend import Backend, backend
from tests.integration.gateway.process import Gateway, gateway, settings_for
from tests.servers.identity import Keys, keys

SECRET = "s" * 32


@pytest.fixture(scope="session")
def identity() -> Keys:
    """The keys of gateway and engine."""
    return keys()


@pytest.fixture(scope="session")
async def services(identity: Keys) -> AsyncIterator[Backend]:
    """The services behind every gateway of these tests."""
    async with backend(identity.public) as behind:
        yield behind


@pytest.fixture(scope="session")
async def dev_gateway(services: Backend, identity: Keys) -> AsyncIterator[Gateway]:
    """A gateway in dev mode that also takes tokens."""
    async with gateway(settings_for(services, identity.gateway, JWT_SECRET=SECRET)) as running:
        yield running


@pytest.fixture
def behind(services: Backend) -> Backend:
    """The services, without a script."""
    services.reset()
    return services


@pytest.fixture
async def client(dev_gateway: Gateway, behind: Backend) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the gateway in dev mode, in English."""
    async with dev_gateway.client(headers={"Accept-Language": "en"}) as client:
        yield client
