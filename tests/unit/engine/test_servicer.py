"""The engine's RPCs, called in process: who is streamed what, and what becomes of a run whose caller goes away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from lintello.engine.v1 import engine_pb2 as pb

from kit.errors import InvalidField
from kit.identity import current
from services.engine import runs
from services.engine.domain import Ending
from services.engine.servicer import EngineServicer
from tests.unit.engine.fakes import CALLER, House, ScriptedModel, ending_of, hanging, over


@pytest.fixture
async def house() -> AsyncIterator[House]:
    token = current.set(CALLER)
    yield House(ScriptedModel(hang="end"))
    current.reset(token)


def servicer(house: House) -> EngineServicer:
    return EngineServicer(house.runs, house.watch, house.store, "fr", house.metrics)


async def leave_after_the_first(house: House, request: pb.ThinkRequest) -> str:
    """Ask, hear one event, and go away; the run's id."""
    current.set(CALLER)
    async with aclosing(servicer(house).Think(request, None)) as answers:
        async for answer in answers:
            return answer.run_id
    raise AssertionError("nothing was said")


async def test_a_caller_that_goes_away_stops_its_run(house: House) -> None:
    run_id = await leave_after_the_first(house, pb.ThinkRequest(message="Bonjour"))
    run = house.runs.find(run_id, CALLER.user)
    assert run is not None
    await over(run)
    assert ending_of(house.store) is Ending.STOPPED


async def test_a_run_that_shall_go_on_goes_on_without_its_caller(house: House) -> None:
    request = pb.ThinkRequest(message="Bonjour", on_disconnect=pb.ON_DISCONNECT_CONTINUE)
    run_id = await leave_after_the_first(house, request)
    run = house.runs.find(run_id, CALLER.user)
    assert run is not None
    await house.model.hanging.wait()
    assert run.stopping is None
    run.stop(Ending.STOPPED)
    await over(run)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_twin_gets_every_event_of_the_run_that_was_started_first(house: House, elsewhere: bool) -> None:
    request = pb.ThinkRequest(message="Bonjour", idempotency_key="k", on_disconnect=pb.ON_DISCONNECT_CONTINUE)
    run_id = await leave_after_the_first(house, request)
    run = house.runs.find(run_id, CALLER.user)
    assert run is not None

    async def twin() -> list[int]:
        current.set(CALLER)
        stream = servicer(house.beside() if elsewhere else house).Think(request, None)
        return [answer.seq async for answer in stream if answer.run_id == run_id]

    reading = asyncio.create_task(twin())
    await house.model.hanging.wait()
    run.stop(Ending.STOPPED)
    assert await reading == list(range(1, run.log.last_seq + 1))
    await over(run)


async def test_a_twin_that_goes_away_never_stops_the_run(house: House) -> None:
    first = pb.ThinkRequest(message="Bonjour", idempotency_key="k", on_disconnect=pb.ON_DISCONNECT_CONTINUE)
    run_id = await leave_after_the_first(house, first)
    run = house.runs.find(run_id, CALLER.user)
    assert run is not None
    await leave_after_the_first(house, pb.ThinkRequest(message="Bonjour", idempotency_key="k"))
    await house.model.hanging.wait()
    assert run.stopping is None
    run.stop(Ending.STOPPED)
    await over(run)


async def test_readers_are_counted_while_they_read(house: House) -> None:
    run = await hanging(house)
    value = house.registry.get_sample_value
    async with aclosing(servicer(house).WatchRun(pb.WatchRunRequest(run_id=run.run_id), None)) as answers:
        await anext(answers)
        assert value("lintello_run_readers") == 1
    assert value("lintello_run_readers") == 0
    run.stop(Ending.STOPPED)
    await over(run)


async def test_the_list_knows_how_far_a_run_of_this_process_has_come(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "HEARTBEAT_SECONDS", 60)
    run = await house.start("Bonjour")
    await house.model.hanging.wait()
    assert house.store.entries[run.run_id].record.last_seq == 0
    listed = await servicer(house).ListRuns(pb.ListRunsRequest(), None)
    assert [(found.run_id, found.last_seq) for found in listed.runs] == [(run.run_id, run.log.last_seq)]
    run.stop(Ending.STOPPED)
    await over(run)


async def test_a_number_below_zero_is_refused(house: House) -> None:
    run = await hanging(house)
    with pytest.raises(InvalidField, match="after_seq"):
        await anext(servicer(house).WatchRun(pb.WatchRunRequest(run_id=run.run_id, after_seq=-1), None))
    run.stop(Ending.STOPPED)
    await over(run)
