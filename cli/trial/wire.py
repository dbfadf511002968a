"""HTTP/1.1 on a socket: one connection, one exchange at a time, and an eye on whether the client is still there.

h11 does the protocol; the bytes are written here, so that a response can be cut, split or stopped at any byte.
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence

import h11

MAX_BODY_BYTES = 16 * 1024 * 1024
READ_BYTES = 64 * 1024
JSON_TYPE = ("content-type", "application/json")

Headers = Sequence[tuple[str, str]]


class BodyTooLarge(Exception):
    """The request's body is larger than `MAX_BODY_BYTES`."""


class Exchange:
    """One request and the means of answering it."""

    def __init__(
        self, protocol: h11.Connection, writer: asyncio.StreamWriter, request: h11.Request, body: bytes
    ) -> None:
        self._protocol = protocol
        self._writer = writer
        self.method = request.method.decode("ascii")
        self.path = request.target.decode("ascii").partition("?")[0]
        self.header_names = tuple(name.decode("ascii") for name, _ in request.headers)
        self.body = body

    @property
    def client_port(self) -> int:
        """The client's TCP port."""
        port: int = self._writer.get_extra_info("peername")[1]
        return port

    async def respond(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a whole response. `headers` must name the content type."""
        await self.start(status, [*headers, ("content-length", str(len(body)))])
        await self.finish(body)

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status line and headers; without a content-length the body is chunked."""
        self._writer.write(self._protocol.send(h11.Response(status_code=status, headers=list(headers))) or b"")
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        """Send a piece of the body, in one write."""
        self._writer.write(self._protocol.send(h11.Data(data=data)) or b"")
        await self._writer.drain()

    async def finish(self, last: bytes = b"") -> None:
        """End the response, with its last piece in the same write: a client that leaves on it left after the end."""
        data = self._protocol.send(h11.Data(data=last)) or b""
        self._writer.write(data + (self._protocol.send(h11.EndOfMessage()) or b""))
        await self._writer.drain()

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        sock = self._writer.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Handler = Callable[[Exchange], Awaitable[None]]


class Connection:
    """One client's connection, kept alive between exchanges."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handle: Handler) -> None:
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._protocol = h11.Connection(h11.SERVER)

    async def run(self) -> None:
        """Answer requests until either side closes. The handler is cancelled the moment its client leaves."""
        try:
            while (exchange := await self._next_exchange()) is not None:
                await self._answer_while_present(exchange)
                if self._writer.is_closing() or self._protocol.our_state is not h11.DONE:
                    return
                if self._protocol.their_state is not h11.DONE:
                    return
                self._protocol.start_next_cycle()
        except (h11.RemoteProtocolError, BodyTooLarge) as refused:
            await self._refuse(413 if isinstance(refused, BodyTooLarge) else 400)
        except ConnectionError:
            return
        finally:
            self._writer.close()

    async def _next_exchange(self) -> Exchange | None:
        request: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._protocol.next_event()
            if event is h11.NEED_DATA:
                if self._protocol.they_are_waiting_for_100_continue:
                    go_on = h11.InformationalResponse(status_code=100, headers=[])
                    self._writer.write(self._protocol.send(go_on) or b"")
                self._protocol.receive_data(await self._reader.read(READ_BYTES))
            elif isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY_BYTES:
                    raise BodyTooLarge
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                return Exchange(self._protocol, self._writer, request, bytes(body))
            else:
                return None

    async def _answer_while_present(self, exchange: Exchange) -> None:
        answer = asyncio.ensure_future(self._handle(exchange))
        departure = asyncio.ensure_future(self._departure())
        try:
            await asyncio.wait({answer, departure}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone = departure.done()
            for task in (answer, departure):
                task.cancel()
            await asyncio.gather(answer, departure, return_exceptions=True)
        if answer.cancelled() or gone:
            self._writer.transport.abort()
        if not answer.cancelled() and (failure := answer.exception()) is not None:
            raise failure

    async def _departure(self) -> None:
        """Return once the client has closed or lost its side; what it sends meanwhile waits for the next exchange."""
        try:
            while data := await self._reader.read(READ_BYTES):
                self._protocol.receive_data(data)
        except ConnectionError:
            return

    async def _refuse(self, status: int) -> None:
        if self._protocol.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=status, headers=[("content-length", "0"), ("connection", "close")])
            self._writer.write(self._protocol.send(response) or b"")
            self._writer.write(self._protocol.send(h11.EndOfMessage()) or b"")
            await self._writer.drain()
