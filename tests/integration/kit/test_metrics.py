"""What every service serves at METRICS_PORT."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cli.local.ports import free_port
from kit.errors import RemoteError
from tests.integration.kit.example import Example, running_example
from tests.servers.example import RPC_SERVICE
from tests.servers.identity import USER, keys
from tests.servers.process import refused
from tests.servers.scrape import scrape

ASK = f"/{RPC_SERVICE}/AssessComplexity"
WATCH = f"/{RPC_SERVICE}/WatchRun"
PATIENCE_SECONDS = 10


class Measured:
    """An example service and what it has counted."""

    def __init__(self, example: Example, port: int) -> None:
        self.example, self.port = example, port

    async def text(self) -> str:
        """`/metrics`."""
        return await scrape(self.port)

    async def value(self, name: str, **labels: str) -> float:
        """One sample; 0 when it isn't there."""
        for family in text_string_to_metric_families(await self.text()):
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return 0


@pytest.fixture(scope="module")
async def measured() -> AsyncIterator[Measured]:
    """A service that serves its metrics."""
    port = free_port()
    async with running_example(metrics_port=port) as example:
        yield Measured(example, port)


async def test_a_call_is_counted_by_its_method_and_code(measured: Measured) -> None:
    before = await measured.value("lintello_grpc_calls_total", method=ASK, code="OK")
    await measured.example.ask("")
    assert await measured.value("lintello_grpc_calls_total", method=ASK, code="OK") == before + 1


async def test_a_refused_call_is_counted_by_the_code_of_its_refusal(measured: Measured) -> None:
    with pytest.raises(RemoteError):
        await measured.example.ask("missing")
    assert await measured.value("lintello_grpc_calls_total", method=ASK, code="NOT_FOUND") == 1


async def test_a_stream_whose_reader_goes_away_is_counted_as_cancelled(measured: Measured) -> None:
    async with aclosing(measured.example.watch("counted", 1_000)) as events:
        await anext(events)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await measured.value("lintello_grpc_calls_total", method=WATCH, code="CANCELLED"):
            await asyncio.sleep(0.05)


async def test_how_long_a_stream_took_is_counted_to_its_end(measured: Measured) -> None:
    before = await measured.value("lintello_grpc_call_seconds_sum", method=WATCH)
    async for _ in measured.example.watch("timed", 10):
        pass
    assert await measured.value("lintello_grpc_call_seconds_sum", method=WATCH) >= before + 10 * 0.05


async def test_health_is_asked_too_often_to_be_counted(measured: Measured) -> None:
    assert "grpc.health" not in await measured.text()


async def test_nobody_is_named(measured: Measured) -> None:
    await measured.example.ask("who")
    assert USER.user not in await measured.text()


async def test_a_taken_port_ends_the_start_with_one_line_and_code_2(measured: Measured) -> None:
    settings = {
        "ENGINE_ADDRESS": f"127.0.0.1:{free_port()}",
        "INTERNAL_PUBLIC_KEYS": keys().public,
        "METRICS_PORT": str(measured.port),
    }
    code, output = await refused("tests.servers.example", settings)
    assert (code, output) == (2, f"LINTELLO_METRICS_PORT: can't listen at 127.0.0.1:{measured.port}\n")


async def test_the_port_of_the_service_itself_is_taken(measured: Measured) -> None:
    port = free_port()
    settings = {
        "ENGINE_ADDRESS": f"127.0.0.1:{port}",
        "INTERNAL_PUBLIC_KEYS": keys().public,
        "METRICS_PORT": str(port),
    }
    code, output = await refused("tests.servers.example", settings)
    assert (code, output) == (2, f"LINTELLO_METRICS_PORT: can't listen at 127.0.0.1:{port}\n")
