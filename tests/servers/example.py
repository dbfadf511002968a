"""A service on the kit that does what the request's text says: run with `python -m tests.servers.example`.

It speaks the engine's protocol, whose calls are of every kind; nothing of the engine is in it.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceServicer, add_EngineServiceServicer_to_server

from kit.deadline import budget
from kit.errors import ErrorTable, InvalidField, Refusal, RemoteError
from kit.identity import Access, Verifier, current
from kit.serve import Service, run, serve
from kit.settings import Settings, load

RPC_SERVICE = "lintello.engine.v1.EngineService"
WORDS = "words-of-a-person"
ACCESS: Mapping[str, Access] = {
    f"/{RPC_SERVICE}/AssessComplexity": "user",
    f"/{RPC_SERVICE}/WatchRun": "user",
    f"/{RPC_SERVICE}/StopRun": "service",
}


class ExampleSettings(Settings):
    """Where to listen."""

    engine_address: str


class Overloaded(Exception):
    """A domain's exception with all that one may carry."""

    metadata: Mapping[str, str] = {"limit": "20"}
    retry_after = 1.5


class Missing(Exception):
    """One whose text is fit for the outside."""


ERRORS: ErrorTable = {
    Overloaded: Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", "too much at once"),
    Missing: Refusal(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
}


class ExampleServicer(EngineServiceServicer):
    """Unary calls are AssessComplexity and StopRun, the stream is WatchRun."""

    async def AssessComplexity(self, request: pb.AssessComplexityRequest, context: Any) -> pb.AssessComplexityResponse:
        """Do what `message` says; the answer's signals are what there is to tell."""
        match request.message:
            case "who":
                caller = current.get()
                return pb.AssessComplexityResponse(signals=[caller.user, caller.actor, *sorted(caller.roles)])
            case "where":
                return pb.AssessComplexityResponse(signals=[str(os.getpid())])
            case "budget":
                return pb.AssessComplexityResponse(signals=[str(budget(60))])
            case "invalid":
                raise InvalidField("message", "is too long")
            case "overloaded":
                raise Overloaded
            case "missing":
                raise Missing("no such thing")
            case "unknown":
                raise ValueError(WORDS)
            case "abandoned":
                # What a library of the service may raise by itself; it is no cancellation by the caller.
                raise TimeoutError(WORDS)
            case "remote":
                raise RemoteError(grpc.StatusCode.ABORTED, "RUN_CLOSED", "it has ended", {"run_id": "has ended"})
            case "remote_away":
                raise RemoteError(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", WORDS)
            case "remote_fault":
                raise RemoteError(grpc.StatusCode.INTERNAL, "INTERNAL", WORDS)
        return pb.AssessComplexityResponse(complexity=1)

    async def StopRun(self, request: pb.StopRunRequest, context: Any) -> pb.StopRunResponse:
        """Take a moment."""
        await asyncio.sleep(0.2)
        return pb.StopRunResponse()

    async def WatchRun(self, request: pb.WatchRunRequest, context: Any) -> AsyncIterator[pb.ThinkingEvent]:
        """Send `after_seq` events, one every 50 ms, then do what `run_id` says; the end of it is printed."""
        try:
            for seq in range(1, request.after_seq + 1):
                yield pb.ThinkingEvent(seq=seq)
                await asyncio.sleep(0.05)
            if request.run_id == "unknown":
                raise ValueError(WORDS)
            if request.run_id == "overloaded":
                raise Overloaded
            print(f"finished {request.run_id}", flush=True)
        finally:
            await asyncio.sleep(0.01)
            print(f"closed {request.run_id}", flush=True)

    async def Think(self, request: pb.ThinkRequest, context: Any) -> AsyncIterator[pb.ThinkingEvent]:
        """In no table of access."""
        yield pb.ThinkingEvent()

    async def ListRuns(self, request: pb.ListRunsRequest, context: Any) -> pb.ListRunsResponse:
        """In no table of access either."""
        return pb.ListRunsResponse()


async def main() -> None:
    """Serve until stopped."""
    settings = load(ExampleSettings)
    await serve(
        Service(
            name="engine",
            address=settings.engine_address,
            rpc_services=(RPC_SERVICE,),
            add=lambda server: add_EngineServiceServicer_to_server(ExampleServicer(), server),
            access=ACCESS,
            errors=ERRORS,
            verifier=Verifier(settings.internal_public_keys, audience="engine"),
            drain_seconds=settings.drain_seconds,
            metrics_port=settings.metrics_port,
        )
    )


if __name__ == "__main__":
    run("engine", main)
