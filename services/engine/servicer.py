"""The engine's RPCs: decode, call, encode."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1 import engine_pb2_grpc

from kit.errors import InvalidField
from kit.identity import Access, current
from kit.ids import checked_id
from services.engine.complexity import assess
from services.engine.domain import Ending
from services.engine.events import Numbered
from services.engine.metrics import Metrics
from services.engine.modes.catalog import Catalog
from services.engine.ports import Store
from services.engine.runs import Earlier, Runs
from services.engine.subscriptions import subscription_of
from services.engine.watch import Watch
from services.engine.wire import locale_from_wire, message_from_wire, mode_to_wire, question_from_wire, run_to_wire
from services.engine.wire_events import event_to_wire

ACCESS: Mapping[str, Access] = {
    "/lintello.engine.v1.EngineService/Think": "user",
    "/lintello.engine.v1.EngineService/WatchRun": "user",
    "/lintello.engine.v1.EngineService/StopRun": "user",
    "/lintello.engine.v1.EngineService/ListRuns": "user",
    "/lintello.engine.v1.EngineService/AssessComplexity": "user",
    "/lintello.engine.v1.ModeService/ListModes": "user",
    "/lintello.engine.v1.ModeService/GetMode": "user",
}


class EngineServicer(engine_pb2_grpc.EngineServiceServicer):
    """EngineService."""

    def __init__(self, runs: Runs, watch: Watch, store: Store, locale: Literal["fr", "en"], metrics: Metrics) -> None:
        self._runs = runs
        self._watch = watch
        self._store = store
        self._locale = locale
        self._metrics = metrics

    async def Think(self, request: pb.ThinkRequest, _: Any) -> AsyncGenerator[pb.ThinkingEvent, None]:
        """Start a run and stream it; a caller that goes away stops it, unless it asked for the run to go on.

        With an idempotency key that came before, stream the run that was started then, which this caller can't end.
        """
        lasting = request.on_disconnect == pb.ON_DISCONNECT_CONTINUE
        run = await self._runs.start(question_from_wire(request, self._locale), current.get(), lasting)
        if isinstance(run, Earlier):
            async with aclosing(self._follow(run.run_id, 0)) as answers:
                async for answer in answers:
                    yield answer
            return
        ended = False
        try:
            async with aclosing(self._encode(run.run_id, run.log.follow())) as answers:
                async for answer in answers:
                    yield answer
            ended = True
        finally:
            if not ended and not lasting:
                run.stop(Ending.STOPPED)

    async def WatchRun(self, request: pb.WatchRunRequest, _: Any) -> AsyncGenerator[pb.ThinkingEvent, None]:
        """Stream a run after a sequence number."""
        run_id = checked_id("run_id", request.run_id)
        if request.after_seq < 0:
            raise InvalidField("after_seq", "must be the number of an event, or 0")
        async with aclosing(self._follow(run_id, request.after_seq)) as answers:
            async for answer in answers:
                yield answer

    async def StopRun(self, request: pb.StopRunRequest, _: Any) -> pb.StopRunResponse:
        """End a run."""
        await self._runs.stop(checked_id("run_id", request.run_id), current.get())
        return pb.StopRunResponse()

    async def ListRuns(self, request: pb.ListRunsRequest, _: Any) -> pb.ListRunsResponse:
        """Read a page of the caller's runs; of those that run here the last event is known exactly."""
        conversation_id = request.conversation_id
        if conversation_id:
            conversation_id = checked_id("conversation_id", conversation_id)
        records, next_page_token = await self._store.list_runs(
            request.page_size, request.page_token, conversation_id, request.active_only, current.get()
        )
        runs = [replace(run, last_seq=max(run.last_seq, self._runs.last_seq(run.run_id))) for run in records]
        return pb.ListRunsResponse(runs=[run_to_wire(run) for run in runs], next_page_token=next_page_token)

    async def AssessComplexity(self, request: pb.AssessComplexityRequest, _: Any) -> pb.AssessComplexityResponse:
        """Say how complex a message is."""
        found = assess(message_from_wire(request.message))
        return pb.AssessComplexityResponse(complexity=found.complexity, signals=found.signals)

    def _follow(self, run_id: str, after: int) -> AsyncGenerator[pb.ThinkingEvent, None]:
        return self._encode(run_id, self._watch.events(run_id, after, current.get()))

    async def _encode(
        self, run_id: str, events: AsyncGenerator[Numbered, None]
    ) -> AsyncGenerator[pb.ThinkingEvent, None]:
        with self._metrics.readers.track_inprogress():
            async with aclosing(events):
                async for event in events:
                    yield event_to_wire(run_id, event)


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
