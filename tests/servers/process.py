"""One of our services as the process it is in production."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from cli.local.ports import free_port

START_SECONDS = 30.0


@dataclass
class ServiceProcess:
    """A running service."""

    address: str
    """`host:port` it listens at."""
    process: asyncio.subprocess.Process
    lines: list[str]
    """What it has written to its standard output and standard error so far."""

    async def stop(self) -> int:
        """SIGTERM, then wait: its exit code."""
        if self.process.returncode is None:
            self.process.terminate()
        return await self.process.wait()


@asynccontextmanager
async def running(
    name: str, settings: Mapping[str, str], module: str | None = None, address: str | None = None
) -> AsyncIterator[ServiceProcess]:
    """Run a service (its module: `services.<name>`) with these settings until it is SERVING; kill it after.

    The settings are named without their prefix; nothing of our own environment's reaches it. Fails with what it wrote
    when it ends instead of serving.
    """
    address = address or f"127.0.0.1:{free_port()}"
    own = {f"{name.upper()}_ADDRESS": address, **settings}
    async with spawned(module or f"services.{name}", own) as (process, lines):
        await _wait_serving(address, process, lines)
        yield ServiceProcess(address, process, lines)


@asynccontextmanager
async def spawned(
    module: str, settings: Mapping[str, str]
) -> AsyncIterator[tuple[asyncio.subprocess.Process, list[str]]]:
    """Run a module with these settings, and gather the lines it writes; kill it after."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    lines: list[str] = []
    reading = asyncio.ensure_future(_read(process, lines))
    try:
        yield process, lines
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading


async def refused(module: str, settings: Mapping[str, str]) -> tuple[int, str]:
    """Run a service that doesn't come to serve: its exit code and what it wrote."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        env=environment(settings),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), START_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()


def environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Our own environment with these settings, and no others, under the prefix."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LINTELLO_")}
    return kept | {f"LINTELLO_{name}": value for name, value in settings.items()}


async def _read(process: asyncio.subprocess.Process, lines: list[str]) -> None:
    assert process.stdout is not None
    async for line in process.stdout:
        lines.append(line.decode().rstrip("\n"))


async def _wait_serving(address: str, process: asyncio.subprocess.Process, lines: list[str]) -> None:
    async with grpc.aio.insecure_channel(address) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        until = asyncio.get_running_loop().time() + START_SECONDS
        while process.returncode is None:
            try:
                answer = await check(health_pb2.HealthCheckRequest(), wait_for_ready=True, timeout=1)
            except grpc.aio.AioRpcError:
                assert asyncio.get_running_loop().time() < until, "\n".join(lines)
            else:
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
                return
    raise AssertionError("it ended: " + "\n".join(lines))
