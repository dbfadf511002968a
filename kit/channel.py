"""Channel: calls to another service of the house, with its token, a deadline, the trace, and errors read back.

Where the other service has several replicas, calls go round those that are up and say that they are serving.
"""

import asyncio
import ipaddress
import json
import random
import time
from collections.abc import AsyncGenerator, Callable
from typing import TypeVar

import grpc

from kit import telemetry
from kit.deadline import budget
from kit.errors import STATUS_KEY, RemoteError, from_rpc
from kit.identity import Caller
from kit.serve import MESSAGE_BYTES
from kit.settings import BadSetting

Request = TypeVar("Request")
Response = TypeVar("Response")

# A replica whose health says NOT_SERVING gets no new call.
SERVICE_CONFIG = {"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": {"serviceName": ""}}
OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    # The environment's proxy is for what is outside.
    ("grpc.enable_http_proxy", 0),
    # A replica that hangs is left within 4 s, sooner than most calls give up, so that they are tried on another.
    ("grpc.keepalive_time_ms", 2_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    # The core waits this long for a ping's answer, whatever the line before says; its default is a minute.
    ("grpc.http2.ping_timeout_ms", 2_000),
    # Its default leaves a connection on which nothing is sent unasked.
    ("grpc.http2.max_pings_without_data", 0),
    # A service that restarts is found again at once, not after the default's two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # And one that comes back under another address, when its name is resolved anew.
    ("grpc.dns_min_time_between_resolutions_ms", 2_000),
)
TRIES = 3
PAUSE_SECONDS = 0.05
"""Before the second try; twice as long before the third."""


def target(address: str, setting: str) -> str:
    """gRPC's name for an address: `host:port`, a target such as `dns:///engine:50051`, or `ip:port,ip:port,…`.

    Raises BadSetting naming the setting for a list that can't be one.
    """
    if "," not in address:
        return address
    parts = [_endpoint(part.strip()) for part in address.split(",")]
    versions = {version for version, _ in parts}
    if versions not in ({4}, {6}):
        raise BadSetting(
            f"{setting}: several replicas are ip:port,ip:port, all IPv4 or all IPv6; for a name write dns:///name:port"
        )
    return f"ipv{versions.pop()}:" + ",".join(endpoint for _, endpoint in parts)


def _endpoint(part: str) -> tuple[int, str]:
    """The IP version and the text of `ip:port`; version 0: it isn't one."""
    host, _, port = part.rpartition(":")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        version = ipaddress.ip_address(host.strip("[]")).version
    except ValueError:
        return 0, part
    good = port.isascii() and port.isdecimal() and 0 < int(port) < 65536 and (version == 6) == host.startswith("[")
    return version if good else 0, f"{host}:{port}"


class Peer:
    """Another service: its channel, and how to speak for a user to it."""

    def __init__(self, address: str, audience: str, mint: Callable[[str, Caller], str]) -> None:
        """`address` is what `target` takes; `mint(audience, caller)` gives a token, see kit.identity.Signer.

        Raises BadSetting.
        """
        name = target(address, f"LINTELLO_{audience.upper()}_ADDRESS")
        self.channel = grpc.aio.insecure_channel(name, options=OPTIONS)
        self.audience = audience
        self._mint = mint

    async def unary(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        caller: Caller,
        timeout: float = 5,
    ) -> Response:
        """Call, and get the answer. `timeout` in seconds bounds it, and so does the deadline of the call being served.

        When no answer comes because the connection is refused or breaks, it is called again, on another replica
        where there is one: every unary call of the house may be repeated. Raises RemoteError.
        """
        until = time.monotonic() + budget(timeout)
        for tried in range(1, TRIES + 1):
            left = until - time.monotonic()
            if left <= 0:
                # To grpc.aio a timeout of 0 means none.
                break
            try:
                return await method(request, metadata=self._metadata(caller), timeout=left)
            except grpc.aio.AioRpcError as error:
                pause = PAUSE_SECONDS * 2 ** (tried - 1) * random.uniform(0.8, 1.2)  # noqa: S311 it spreads, no more
                if tried == TRIES or not _was_cut_off(error) or time.monotonic() + pause >= until:
                    raise from_rpc(error) from None
            await asyncio.sleep(pause)
        raise RemoteError(grpc.StatusCode.DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED", "there was no time left")

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


def _was_cut_off(error: grpc.aio.AioRpcError) -> bool:
    """Whether the call ended with its connection or with the service, not by a refusal of the service's own."""
    answered = any(key == STATUS_KEY for key, _ in error.trailing_metadata() or ())
    return error.code() in _CUT_OFF and not answered


# CANCELLED is never our own doing here: that would be an asyncio.CancelledError.
_CUT_OFF = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
