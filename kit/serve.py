"""Serve: what every gRPC service of the house does around its own calls.

Health and reflection, one interceptor (trace, identity, errors), and a stop that drains: health says NOT_SERVING
first, what runs is given time, then the rest is cancelled.
"""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import structlog
from google.rpc import status_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from opentelemetry.trace import SpanKind
from prometheus_client import CollectorRegistry

from kit import telemetry
from kit.deadline import deadline
from kit.errors import STATUS_KEY, ErrorTable, Refusal, RemoteError, refusal_for, to_status
from kit.identity import Access, Forbidden, NotVerified, Verifier, authorize, bearer, current
from kit.metrics import Calls, exposed
from kit.settings import BadSetting

OPEN = ("/grpc.health.v1.Health/", "/grpc.reflection.v1alpha.ServerReflection/")
NOTICE_SECONDS = 0.2
"""How long a stopping service still takes calls, while those who watch its health learn that it isn't serving."""
LAST_ANSWERS_SECONDS = 1
"""How long a service that has drained gives the answers that are still being written."""
LAST_BYTES_SECONDS = 0.2
"""How long a stopping service gives the bytes of answers to reach the line."""
SLOW_SECONDS = 1.0
"""Calls that take longer are logged, also when they went well."""
CLEAN_UP_SECONDS = 5
"""How long a stopping service gives calls that were cut to clean up."""
MESSAGE_BYTES = 20 * 1024 * 1024
OPTIONS = (
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    # Without it a reader that stalls gets its share of a growing window, and thousands of messages pile up.
    ("grpc.http2.bdp_probe", 0),
    ("grpc.so_reuseport", 0),
    # Clients ask every 2 s whether the connection lives (kit.channel); on a busy machine two pings may come at once.
    ("grpc.http2.max_ping_strikes", 0),
)

UNAUTHENTICATED = Refusal(grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
FORBIDDEN = Refusal(grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")
UNAVAILABLE = Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "a part this call needs doesn't answer")
INTERNAL = Refusal(grpc.StatusCode.INTERNAL, "INTERNAL", "internal error")


@dataclass(frozen=True)
class Service:
    """One gRPC service process."""

    name: str
    """What it is called in tokens (`aud`), logs and traces."""
    address: str
    """`host:port` to listen at."""
    rpc_services: tuple[str, ...]
    """Full protobuf names, for health and reflection."""
    add: Callable[[grpc.aio.Server], None]
    """Adds the servicers."""
    access: Mapping[str, Access]
    """`/package.Service/Method` → who may call it."""
    errors: ErrorTable
    verifier: Verifier
    drain_seconds: float
    metrics_port: int | None = None
    """Where `/metrics` is served, on the host of `address`; None: nowhere."""
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    """What is served there: the calls, and the service's own collectors."""


class Guard(grpc.aio.ServerInterceptor):
    """The one interceptor: opens the trace, verifies the caller, and turns exceptions into codes and reasons."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._calls = Calls(service.registry)
        self._running = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self, seconds: float) -> None:
        """Wait until no call runs, its cleaning up included, for at most so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            pass

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], "Awaitable[grpc.RpcMethodHandler[Any, Any] | None]"],
        details: grpc.HandlerCallDetails,
    ) -> "grpc.RpcMethodHandler[Any, Any] | None":
        """Wrap the handler of one call; health and reflection pass as they are."""
        handler = await continuation(details)
        if handler is None or details.method.startswith(OPEN):
            return handler
        codec = {
            "request_deserializer": handler.request_deserializer,
            "response_serializer": handler.response_serializer,
        }
        if handler.unary_unary is not None:
            return grpc.unary_unary_rpc_method_handler(self._unary(handler.unary_unary, details), **codec)
        return grpc.unary_stream_rpc_method_handler(self._stream(handler.unary_stream, details), **codec)

    def _unary(self, behaviour: Any, details: grpc.HandlerCallDetails) -> Any:
        async def call(request: Any, context: Any) -> Any:
            async with self._around(details, context):
                return await behaviour(request, context)

        return call

    def _stream(self, behaviour: Any, details: grpc.HandlerCallDetails) -> Any:
        # No generator: a call that is cancelled while it writes would leave one to the collector, in another task.
        async def call(request: Any, context: Any) -> None:
            async with self._around(details, context), aclosing(behaviour(request, context)) as answers:
                async for answer in answers:
                    await context.write(answer)

        return call

    @asynccontextmanager
    async def _around(self, details: grpc.HandlerCallDetails, context: Any) -> AsyncIterator[None]:
        metadata = {key: value for key, value in details.invocation_metadata or () if isinstance(value, str)}
        began = time.perf_counter()
        code = grpc.StatusCode.OK
        structlog.contextvars.clear_contextvars()
        self._running += 1
        self._idle.clear()
        with telemetry.span(details.method.removeprefix("/"), SpanKind.SERVER, metadata):
            try:
                caller = self._service.verifier.verify(bearer(metadata))
                authorize(caller, self._service.access[details.method])
                current.set(caller)
                left = context.time_remaining()
                deadline.set(None if left is None else time.monotonic() + left)
                yield
            except asyncio.CancelledError:
                code = grpc.StatusCode.CANCELLED
                raise
            except Exception as error:  # noqa: BLE001 the one place where anything is caught
                row = self._row(error)
                code = row.code
                if row is INTERNAL:
                    telemetry.fault("call_failed", error, method=details.method)
                await abort(context, error, row)
            finally:
                seconds = time.perf_counter() - began
                self._calls.served(details.method, code.name, seconds)
                # Calls that went well and fast are counted, not told one by one: a think makes ten of them.
                if code is not grpc.StatusCode.OK or seconds >= SLOW_SECONDS:
                    telemetry.log.info("call", method=details.method, code=code.name, ms=round(seconds * 1000, 1))
                self._running -= 1
                if self._running == 0:
                    self._idle.set()

    def _row(self, error: Exception) -> Refusal:
        match error:
            case NotVerified():
                return UNAUTHENTICATED
            case Forbidden():
                return FORBIDDEN
            case RemoteError(code=code) if code in _PASSED_ON:
                return Refusal(code, error.reason, error.message)
            case RemoteError():
                return UNAVAILABLE if error.code in _AWAY else INTERNAL
        return refusal_for(error, self._service.errors) or INTERNAL


_AWAY = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED}
_PASSED_ON = {
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DATA_LOSS,
}


async def abort(context: Any, error: Exception, row: Refusal) -> None:
    """End a call with an error's code, reason and details. Always raises."""
    status: status_pb2.Status = to_status(error, row)
    await context.abort(row.code, status.message, ((STATUS_KEY, status.SerializeToString()),))


async def serve(service: Service, on_drain: Callable[[float], Awaitable[None]] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, then drain.

    `on_drain` is told how many seconds there are for what runs, and is awaited before calls are cut.
    Raises BadSetting when the address, or the port of metrics, can't be listened at.
    """
    guard = Guard(service)
    server = grpc.aio.server(interceptors=[guard], options=OPTIONS)
    service.add(server)
    checks = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(
        (*service.rpc_services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME),
        server,
    )
    # Asked beforehand, because gRPC's core writes lines of its own when it can't listen.
    if not can_listen(service.address) or server.add_insecure_port(service.address) == 0:
        raise BadSetting(f"LINTELLO_{service.name.upper()}_ADDRESS: can't listen at {service.address}")
    async with exposed(service.registry, service.address, service.metrics_port):
        await _serve_until_told(service, server, checks, guard, on_drain)


async def _serve_until_told(
    service: Service,
    server: grpc.aio.Server,
    checks: health.aio.HealthServicer,
    guard: Guard,
    on_drain: Callable[[float], Awaitable[None]] | None,
) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    for name in ("", *service.rpc_services):
        await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
    telemetry.log.info("serving", address=service.address)
    await stop.wait()
    await checks.enter_graceful_shutdown()
    telemetry.log.info("draining", seconds=service.drain_seconds)
    await asyncio.sleep(NOTICE_SECONDS)
    seconds = service.drain_seconds
    if on_drain is not None:
        await on_drain(seconds)
        seconds = LAST_ANSWERS_SECONDS
    # From here on no new call is taken. Who watches the health has a call open for ever: nobody waits for that.
    refusing = asyncio.ensure_future(server.stop(grace=seconds))
    await guard.idle(seconds)
    await server.stop(grace=LAST_BYTES_SECONDS)
    await refusing
    await guard.idle(CLEAN_UP_SECONDS)
    telemetry.log.info("stopped")


def can_listen(address: str) -> bool:
    """Whether `address` is `host:port`, and nobody listens there yet."""
    host, _, port = address.rpartition(":")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host.strip("[]"), int(port)), family=family).close()
    except (OSError, ValueError, OverflowError):
        return False
    return True


def run(name: str, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a service's main on uvloop. A bad setting ends the process with one line and exit code 2."""
    import uvloop

    telemetry.configure(name)
    try:
        uvloop.run(main())
    except BadSetting as error:
        print(error, file=sys.stderr)
        raise SystemExit(2) from None
