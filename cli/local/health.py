"""Asking the parts of a stack whether they are healthy."""

import asyncio
from collections.abc import Awaitable, Callable

from cli.local.ports import LOOPBACK

CHECK_SECONDS = 2.0

Check = Callable[[int], Awaitable[bool]]
"""Whether what listens on this port of the loopback address is healthy; never raises."""


async def listens(port: int) -> bool:
    """Whether something accepts connections."""
    try:
        _, writer = await asyncio.open_connection(LOOPBACK, port)
    except OSError:
        return False
    writer.close()
    return True


async def grpc_serving(port: int) -> bool:
    """Whether `grpc.health.v1` says SERVING for the whole server."""
    if not await listens(port):
        return False
    # Imported late: the command line's other commands do without gRPC's memory and time.
    import grpc
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    # A pool of its own, or the address's earlier failures would make this channel wait before it connects.
    options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(f"{LOOPBACK}:{port}", options=options) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        try:
            answer = await health.Check(health_pb2.HealthCheckRequest(service=""), timeout=CHECK_SECONDS)
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def http_ready(port: int) -> bool:
    """Whether `GET /readyz` answers 200."""
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                writer.write(f"GET /readyz HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n".encode())
                status = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status.split(b" ")[1:2] == [b"200"]
