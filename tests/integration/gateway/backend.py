"""The services behind the gateway: real gRPC servers that verify every token and play the test's script."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import (
    EngineServiceServicer,
    ModeServiceServicer,
    add_EngineServiceServicer_to_server,
    add_ModeServiceServicer_to_server,
)
from lintello.treestore.v1 import treestore_pb2 as ts
from opentelemetry.trace import get_current_span

from kit.errors import ErrorTable, Refusal
from kit.identity import Access, Caller, Verifier, current
from kit.serve import OPTIONS, Guard, Service

Script = Callable[[pb.ThinkRequest | pb.WatchRunRequest], AsyncGenerator[pb.ThinkingEvent, None]]


class Scripted(Exception):
    """A refusal that a test asks for."""


class Unknown(Exception):
    """There is no such run."""


class Refuser(dict[type[Exception], Refusal]):
    """An error table whose row for Scripted a test sets."""

    def __init__(self) -> None:
        super().__init__({Unknown: Refusal(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "no such run")})

    def refuse(self, code: grpc.StatusCode, reason: str, message: str = "not now") -> None:
        """What Scripted is said as from now on."""
        self[Scripted] = Refusal(code, reason, message)


class Engine(EngineServiceServicer, ModeServiceServicer):
    """The engine: it plays the script of the test and remembers who asked what."""

    def __init__(self) -> None:
        self.errors = Refuser()
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self.script: Script | None = None
        """What Think plays."""
        self.watched: Script | None = None
        """What WatchRun plays; None: there is no such run."""
        self.refusing = False
        self.refusals = 0
        """How many more calls are refused."""
        self.runs = pb.ListRunsResponse()
        self.asked: list[tuple[Caller, Any]] = []
        self.traces: list[str] = []
        self.call_ended = asyncio.Event()
        self.modes: list[pb.Mode] = []

    async def Think(self, request: pb.ThinkRequest, context: Any) -> AsyncIterator[pb.ThinkingEvent]:
        self._note(request)
        assert self.script is not None
        try:
            async for event in self.script(request):
                yield event
        finally:
            self.call_ended.set()

    async def WatchRun(self, request: pb.WatchRunRequest, context: Any) -> AsyncIterator[pb.ThinkingEvent]:
        self._note(request)
        if self.watched is None:
            raise Unknown
        try:
            async for event in self.watched(request):
                yield event
        finally:
            self.call_ended.set()

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        self._note(request)
        return self.runs

    async def StopRun(self, request: pb.StopRunRequest, context: Any) -> pb.StopRunResponse:
        self._note(request)
        return pb.StopRunResponse()

    async def ListModes(self, request: pb.ListModesRequest, context: Any) -> pb.ListModesResponse:
        self._note(request)
        return pb.ListModesResponse(modes=self.modes)

    def AssessComplexity(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    def GetMode(self, request: Any, context: Any) -> Any:
        raise NotImplementedError

    def _note(self, request: Any) -> None:
        self.asked.append((current.get(), request))
        self.traces.append(f"{get_current_span().get_span_context().trace_id:032x}")
        if self.refusing or self.refusals > 0:
            self.refusals -= 1
            raise Scripted


class TreeStore:
    """The treestore: it gives the answers of the test, by method, and remembers who asked what."""

    def __init__(self) -> None:
        self.errors = Refuser()
        self.reset()

    def reset(self) -> None:
        """Forget all."""
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[Caller, Any]] = []

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve every method of the service."""
        service = ts.DESCRIPTOR.services_by_name["TreeStoreService"]
        handlers = {
            method.name: grpc.unary_unary_rpc_method_handler(
                self._behaviour(method.name),
                request_deserializer=GetMessageClass(method.input_type).FromString,
                response_serializer=GetMessageClass(method.output_type).SerializeToString,
            )
            for method in service.methods
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))

    def _behaviour(self, method: str) -> Any:
        async def behaviour(request: Any, context: Any) -> Any:
            self.asked.append((current.get(), request))
            if method not in self.answers:
                raise Scripted
            return self.answers[method]

        return behaviour


@dataclass
class Backend:
    """The three services and where they are."""

    engine: Engine
    treestore: TreeStore
    public_keys: str
    addresses: dict[str, str] = field(default_factory=dict)
    checks: dict[str, health.aio.HealthServicer] = field(default_factory=dict)
    servers: dict[str, grpc.aio.Server] = field(default_factory=dict)

    async def start(self, name: str) -> None:
        """Serve one of them, at its old address when it has been served before."""
        descriptors = {
            "engine": [pb.DESCRIPTOR.services_by_name[one] for one in ("EngineService", "ModeService")],
            "treestore": [ts.DESCRIPTOR.services_by_name["TreeStoreService"]],
            "quota": [],
        }[name]
        access: dict[str, Access] = {
            f"/{service.full_name}/{method.name}": "user" for service in descriptors for method in service.methods
        }
        errors: ErrorTable = {"engine": self.engine.errors, "treestore": self.treestore.errors}.get(name, {})
        verifier = Verifier(self.public_keys, name)
        service = Service(name, "", (), lambda _: None, access, errors, verifier, 1)
        server = grpc.aio.server(interceptors=[Guard(service)], options=OPTIONS)
        if name == "engine":
            add_EngineServiceServicer_to_server(self.engine, server)
            add_ModeServiceServicer_to_server(self.engine, server)
        elif name == "treestore":
            self.treestore.add_to(server)
        self.checks[name] = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(self.checks[name], server)
        await self.checks[name].set("", health_pb2.HealthCheckResponse.SERVING)
        port = server.add_insecure_port(self.addresses.get(name, "127.0.0.1:0"))
        self.addresses[name] = f"127.0.0.1:{port}"
        self.servers[name] = server
        await server.start()

    async def stop(self, name: str) -> None:
        """Cut every call and close the port."""
        await self.servers.pop(name).stop(None)

    def reset(self) -> None:
        """Forget what the test before wanted."""
        self.engine.reset()
        self.treestore.reset()


@asynccontextmanager
async def backend(public_keys: str) -> AsyncIterator[Backend]:
    """The three services, serving."""
    behind = Backend(Engine(), TreeStore(), public_keys)
    async with AsyncExitStack() as stack:
        for name in ("engine", "treestore", "quota"):
            await behind.start(name)
        stack.push_async_callback(_stop_all, behind)
        yield behind


async def _stop_all(behind: Backend) -> None:
    for name in list(behind.servers):
        await behind.stop(name)
