"""A TCP proxy that stands between any client and server, and spoils the connections through it on command."""

import asyncio
import socket
import struct
import weakref
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from cli.local.ports import LOOPBACK

CHUNK = 64 * 1024
SLICES_A_SECOND = 20


class Proxy:
    """Passes bytes on between its own port and one server, a TCP address or a Unix socket."""

    def __init__(self, upstream: tuple[str, int] | Path) -> None:
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._holder = _bound()
        self._links: set[_Link] = set()
        self._ended: weakref.WeakSet[asyncio.StreamWriter] = weakref.WeakSet()
        self._flow = asyncio.Event()
        self._flow.set()
        self._rate: float | None = None
        self.port: int = self._holder.getsockname()[1]
        self.accepted = 0
        """How many connections have come through so far."""

    @property
    def open(self) -> int:
        """How many connections are open."""
        return len(self._links)

    @property
    def listens(self) -> bool:
        """Whether it takes connections."""
        return self._server is not None and self._server.is_serving()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, self.port, backlog=1024, reuse_port=True)

    async def stop(self) -> None:
        """Close the port and every connection."""
        self._holder.close()
        if self._server is not None:
            self._server.close()
            self._server = None
        self._flow.set()
        self.cut()
        await asyncio.gather(*(link.task for link in self._links if link.task is not None), return_exceptions=True)

    def cut(self) -> None:
        """Close every connection, towards both sides, as a proxy does that restarts."""
        for link in list(self._links):
            link.end(reset=False)

    def reset(self) -> None:
        """Break every connection with a TCP reset, towards both sides."""
        for link in list(self._links):
            link.end(reset=True)

    def half_close(self) -> None:
        """Tell every client that nothing more will come; what it sends still goes through."""
        for link in list(self._links):
            self._end(link.client)

    @asynccontextmanager
    async def refusing(self) -> AsyncIterator[None]:
        """Meanwhile connections are refused, and those there were are reset: the server is away."""
        assert self._server is not None
        self._server.close()
        self.reset()
        try:
            yield
        finally:
            await self.start()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Meanwhile connections are taken and stay open, and no byte goes through in either direction."""
        self._flow.clear()
        try:
            yield
        finally:
            self._flow.set()

    @contextmanager
    def slowed(self, bytes_per_second: float) -> Iterator[None]:
        """Meanwhile no connection carries more than this in either direction."""
        self._rate = bytes_per_second
        try:
            yield
        finally:
            self._rate = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        link = _Link(writer)
        link.task = asyncio.current_task()
        self._links.add(link)
        try:
            if isinstance(self._upstream, Path):
                up_reader, link.server = await asyncio.open_unix_connection(str(self._upstream))
            else:
                up_reader, link.server = await asyncio.open_connection(*self._upstream)
            await asyncio.gather(self._pump(reader, link.server), self._pump(up_reader, writer))
        except OSError:
            # The server isn't there, or one side broke: so does the other.
            link.end(reset=True)
        except asyncio.CancelledError:
            # `stop` or the end of the loop; streams would report a cancelled handler as an error.
            link.end(reset=True)
        finally:
            self._links.discard(link)
            link.end(reset=False)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK if self._rate is None else max(1, int(self._rate / SLICES_A_SECOND))):
            if self._rate is not None:
                await asyncio.sleep(len(data) / self._rate)
            await self._flow.wait()
            if writer not in self._ended:
                writer.write(data)
                await writer.drain()
        await self._flow.wait()
        self._end(writer)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        """Say that nothing more will come; what would still have come is dropped."""
        if writer not in self._ended and not writer.is_closing():
            self._ended.add(writer)
            writer.write_eof()


class _Link:
    """One connection and its other half."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.server: asyncio.StreamWriter | None = None
        self.task: asyncio.Task[None] | None = None

    def end(self, *, reset: bool) -> None:
        for writer in (self.client, self.server):
            if writer is None or writer.transport.is_closing():
                continue
            if reset:
                _reset(writer)
            else:
                writer.close()


def _bound() -> socket.socket:
    """A socket that keeps a port ours while nothing listens there, so that nobody else is found at it."""
    holder = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    holder.bind((LOOPBACK, 0))
    return holder


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None and sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def proxying(upstream: tuple[str, int] | Path) -> AsyncIterator[Proxy]:
    """A proxy to this server, closed afterwards."""
    proxy = Proxy(upstream)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
