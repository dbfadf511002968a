"""The engine's RPCs: decode, call, encode."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Literal

from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1 import engine_pb2_grpc

from kit.errors import InvalidField
from kit.identity import Access, current
from kit.ids import checked_id
from services.engine.complexity import assess
from services.engine.domain import Ending
from services.engine.modes.catalog import Catalog
from services.engine.runs import Run, Runs
from services.engine.subscriptions import subscription_of
from services.engine.wire import event_to_wire, locale_from_wire, message_from_wire, mode_to_wire, question_from_wire

ACCESS: Mapping[str, Access] = {
    "/lintello.engine.v1.EngineService/Think": "user",
    "/lintello.engine.v1.EngineService/WatchRun": "user",
    "/lintello.engine.v1.EngineService/StopRun": "user",
    "/lintello.engine.v1.EngineService/AssessComplexity": "user",
    "/lintello.engine.v1.ModeService/ListModes": "user",
    "/lintello.engine.v1.ModeService/GetMode": "user",
}


class EngineServicer(engine_pb2_grpc.EngineServiceServicer):
    """EngineService."""

    def __init__(self, runs: Runs, locale: Literal["fr", "en"]) -> None:
        self._runs = runs
        self._locale = locale

    async def Think(self, request: pb.ThinkRequest, _: Any) -> AsyncGenerator[pb.ThinkingEvent, None]:
        """Start a run and stream it; a caller that goes away stops it, unless it asked for the run to go on."""
        run = await self._runs.start(question_from_wire(request, self._locale), current.get())
        ended = False
        try:
            async with aclosing(_events(run, 0)) as answers:
                async for answer in answers:
                    yield answer
            ended = True
        finally:
            if not ended and request.on_disconnect != pb.ON_DISCONNECT_CONTINUE:
                run.stop(Ending.STOPPED)

    async def WatchRun(self, request: pb.WatchRunRequest, _: Any) -> AsyncGenerator[pb.ThinkingEvent, None]:
        """Stream a run of this process after a sequence number."""
        run = self._runs.find(checked_id("run_id", request.run_id), current.get().user)
        if not 0 <= request.after_seq <= run.log.last_seq:
            raise InvalidField("after_seq", "must be the number of an event that was sent, or 0")
        async with aclosing(_events(run, request.after_seq)) as answers:
            async for answer in answers:
                yield answer

    async def StopRun(self, request: pb.StopRunRequest, _: Any) -> pb.StopRunResponse:
        """End a run."""
        await self._runs.stop(checked_id("run_id", request.run_id), current.get())
        return pb.StopRunResponse()

    async def AssessComplexity(self, request: pb.AssessComplexityRequest, _: Any) -> pb.AssessComplexityResponse:
        """Say how complex a message is."""
        found = assess(message_from_wire(request.message))
        return pb.AssessComplexityResponse(complexity=found.complexity, signals=found.signals)


class ModeServicer(engine_pb2_grpc.ModeServiceServicer):
    """ModeService."""

    def __init__(self, catalog: Catalog, locale: Literal["fr", "en"]) -> None:
        self._catalog = catalog
        self._locale = locale

    async def ListModes(self, request: pb.ListModesRequest, _: Any) -> pb.ListModesResponse:
        """Read the enabled modes."""
        locale = locale_from_wire(request.locale, self._locale)
        return pb.ListModesResponse(
            modes=[
                mode_to_wire(mode, locale, mode.may_think(subscription_of(current.get().subscription)))
                for mode in self._catalog.enabled()
            ]
        )

    async def GetMode(self, request: pb.GetModeRequest, _: Any) -> pb.GetModeResponse:
        """Read one mode."""
        if not request.slug:
            raise InvalidField("slug", "must not be empty")
        locale = locale_from_wire(request.locale, self._locale)
        mode = self._catalog.get(request.slug, "slug")
        return pb.GetModeResponse(
            mode=mode_to_wire(mode, locale, mode.may_think(subscription_of(current.get().subscription)))
        )


async def _events(run: Run, after: int) -> AsyncGenerator[pb.ThinkingEvent, None]:
    async with aclosing(run.log.follow(after)) as numbered:
        async for event in numbered:
            yield event_to_wire(run.run_id, event)
