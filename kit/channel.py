"""Channel: calls to another service of the house, with its token, a deadline, the trace, and errors read back."""

from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import grpc

from kit import telemetry
from kit.deadline import budget
from kit.errors import RemoteError, from_rpc
from kit.identity import Caller
from kit.serve import MESSAGE_BYTES

Request = TypeVar("Request")
Response = TypeVar("Response")

OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    # A service that restarts is found again at once, not after the default's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)


class Peer:
    """Another service: its channel, and how to speak for a user to it."""

    def __init__(self, address: str, audience: str, mint: Callable[[str, Caller], str]) -> None:
        """`mint(audience, caller)` gives a token; see kit.identity.Signer."""
        self.channel = grpc.aio.insecure_channel(address, options=OPTIONS)
        self.audience = audience
        self._mint = mint

    async def unary(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        caller: Caller,
        timeout: float = 5,
    ) -> Response:
        """Call once. `timeout` in seconds bounds it, and so does the deadline of the call being served.

        Raises RemoteError.
        """
        seconds = budget(timeout)
        if seconds <= 0:
            # To grpc.aio a timeout of 0 means none.
            raise RemoteError(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", "there was no time left")
        call = method(request, metadata=self._metadata(caller), timeout=seconds)
        try:
            return await call
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None

    async def stream(
        self, method: grpc.aio.UnaryStreamMultiCallable[Request, Response], request: Request, caller: Caller
    ) -> AsyncGenerator[Response]:
        """Stream the answers; closing the iterator (contextlib.aclosing) cancels the call. Raises RemoteError."""
        call = method(request, metadata=self._metadata(caller))
        try:
            async for answer in call:
                yield answer
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None
        finally:
            call.cancel()

    async def close(self) -> None:
        """Close the channel."""
        await self.channel.close()

    def _metadata(self, caller: Caller) -> tuple[tuple[str, str], ...]:
        metadata = {"authorization": f"Bearer {self._mint(self.audience, caller)}"}
        return tuple(telemetry.propagate(metadata).items())
