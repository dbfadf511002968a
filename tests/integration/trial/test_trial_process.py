"""The trial model as a process of its own."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from cli.trial.server import serving


@asynccontextmanager
async def trial_process(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cli.trial",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def base_url(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def test_it_dies_quietly_on_sigterm_with_a_stream_open() -> None:
    body = {"model": "lintello-essai-small", "messages": [{"role": "user", "content": "Bonjour"}], "stream": True}
    async with trial_process("--rate", "1") as process:
        url = f"{await base_url(process)}/chat/completions"
        async with httpx.AsyncClient(trust_env=False) as client, client.stream("POST", url, json=body) as answer:
            await anext(answer.aiter_bytes())
            process.send_signal(signal.SIGTERM)
            output, errors = await process.communicate()
    assert (process.returncode, output, errors) == (0, b"", b"")


async def test_it_offers_no_control_unless_told_to() -> None:
    async with trial_process() as process, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.get((await base_url(process)).removesuffix("v1") + "control/calls")
    assert answer.status_code == 404


async def test_a_taken_port_is_named_in_one_line() -> None:
    async with serving() as other:
        port = other.base_url.removesuffix("/v1").rpartition(":")[2]
        async with trial_process("--port", port) as process:
            _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode().count("\n") == 1
    assert port in errors.decode()
