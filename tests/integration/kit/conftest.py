"""One example service for the tests that leave it as it was."""

from collections.abc import AsyncIterator

import pytest

from tests.integration.kit.example import Example, running_example


@pytest.fixture(scope="session")
async def example() -> AsyncIterator[Example]:
    """A running service on the kit."""
    async with running_example() as example:
        yield example
