"""The proxy does what it is told, or the tests that stand on it prove nothing."""

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from tests.faults.proxy import Proxy, proxying

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A proxy to a server that sends back what it gets, and says `bye` when its client has no more to say."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1024):
                writer.write(data)
            writer.write(b"bye")
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with proxying(("127.0.0.1", server.sockets[0].getsockname()[1])) as proxy:
        yield proxy
    server.close()


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Streams]:
    """A connection through the proxy that has been used once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"hello")
    assert await reader.readexactly(5) == b"hello"
    yield reader, writer
    writer.close()


async def test_a_cut_ends_the_connection_in_good_order(proxy: Proxy, client: Streams) -> None:
    proxy.cut()
    assert await client[0].read() == b""


async def test_a_reset_breaks_the_connection(proxy: Proxy, client: Streams) -> None:
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        await client[0].read()


async def test_while_it_refuses_nobody_gets_in_and_afterwards_the_same_port_answers(
    proxy: Proxy, client: Streams
) -> None:
    async with proxy.refusing():
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    writer.write(b"again")
    assert await reader.readexactly(5) == b"again"
    writer.close()


async def test_while_it_stalls_nothing_comes_through_and_afterwards_nothing_is_missing(
    proxy: Proxy, client: Streams
) -> None:
    reader, writer = client
    with proxy.stalled():
        writer.write(b"waits")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(5), 0.2)
    assert await reader.readexactly(5) == b"waits"


async def test_what_is_slowed_takes_its_time(proxy: Proxy, client: Streams) -> None:
    reader, writer = client
    began = time.monotonic()
    with proxy.slowed(bytes_per_second=4000):
        writer.write(b"x" * 2000)
        await reader.readexactly(2000)
    assert time.monotonic() - began >= 0.4


async def test_after_a_half_close_what_the_client_sends_still_arrives(proxy: Proxy, client: Streams) -> None:
    reader, writer = client
    proxy.half_close()
    assert await reader.read() == b""
    writer.write(b"still here")
    writer.write_eof()
    async with asyncio.timeout(5):
        # The server has read to the end, and ended the connection itself.
        while proxy.open:
            await asyncio.sleep(0.01)


async def test_the_end_of_one_side_is_passed_on(proxy: Proxy, client: Streams) -> None:
    reader, writer = client
    writer.write_eof()
    assert await reader.read() == b"bye"
