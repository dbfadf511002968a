"""What every service does around its own calls: health, reflection, identity, errors, and the end."""

import asyncio
from contextlib import aclosing

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from lintello.engine.v1 import engine_pb2 as pb
from lintello.engine.v1.engine_pb2_grpc import EngineServiceStub

from kit.errors import RemoteError
from tests.integration.kit.example import Example, running_example
from tests.servers.example import RPC_SERVICE, WORDS
from tests.servers.identity import USER, keys
from tests.servers.process import refused

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_client_without_our_files_finds_the_calls_by_reflection(example: Example) -> None:
    def look() -> tuple[set[str], list[str]]:
        with grpc.insecure_channel(example.process.address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            service = DescriptorPool(database).FindServiceByName(RPC_SERVICE)
            return set(database.get_services()), [method.name for method in service.methods]

    services, methods = await asyncio.to_thread(look)
    assert services >= {RPC_SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}
    assert methods == ["Think", "WatchRun", "StopRun", "ListRuns", "AssessComplexity"]


@pytest.mark.parametrize("service", ["", RPC_SERVICE])
async def test_health_says_serving_to_anybody(example: Example, service: str) -> None:
    async with grpc.aio.insecure_channel(example.process.address) as channel:
        answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    assert answer.status == SERVING


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer x"),), (("x-user", "admin-1"),)])
async def test_a_call_without_a_good_token_is_unauthenticated(
    example: Example, metadata: tuple[tuple[str, str], ...]
) -> None:
    async with grpc.aio.insecure_channel(example.process.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await EngineServiceStub(channel).AssessComplexity(pb.AssessComplexityRequest(), metadata=metadata)
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_a_stream_without_a_token_is_unauthenticated(example: Example) -> None:
    async with grpc.aio.insecure_channel(example.process.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            async for _ in EngineServiceStub(channel).WatchRun(pb.WatchRunRequest(after_seq=1)):
                pass
    assert refused.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_the_handler_knows_who_calls_by_the_token_alone(example: Example) -> None:
    assert await example.ask("who") == [USER.user, "gateway", "user"]


async def test_a_user_s_token_on_a_service_s_call_is_refused(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.peer.unary(example.stub.StopRun, pb.StopRunRequest(), USER)
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.PERMISSION_DENIED, "FORBIDDEN")


async def test_a_call_in_no_table_of_access_is_served_to_nobody(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        async for _ in example.peer.stream(example.stub.Think, pb.ThinkRequest(), USER):
            pass
    assert refused.value.code == grpc.StatusCode.INTERNAL


async def test_a_bad_field_is_named_on_the_other_side(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask("invalid")
    error = refused.value
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    assert error.fields == {"message": "is too long"}


async def test_a_refusal_keeps_reason_message_metadata_and_when_to_try_again(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask("overloaded")
    error = refused.value
    assert (error.code, error.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert (error.message, error.metadata, error.retry_after) == ("too much at once", {"limit": "20"}, 1.5)


async def test_a_stream_s_refusal_keeps_its_reason_too(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        async for _ in example.watch("overloaded", 1):
            pass
    assert refused.value.reason == "OVERLOADED"


async def test_a_refusal_without_a_message_of_its_own_says_the_exception_s(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask("missing")
    assert (refused.value.code, refused.value.message) == (grpc.StatusCode.NOT_FOUND, "no such thing")


async def test_the_refusal_of_a_service_behind_it_is_passed_on(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask("remote")
    error = refused.value
    assert (error.code, error.reason, error.fields) == (
        grpc.StatusCode.ABORTED,
        "RUN_CLOSED",
        {"run_id": "has ended"},
    )


async def test_a_service_behind_it_that_is_away_makes_it_unavailable(example: Example) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask("remote_away")
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE")
    assert WORDS not in refused.value.message


@pytest.mark.parametrize("message", ["unknown", "abandoned", "remote_fault"])
async def test_an_exception_nobody_named_is_internal_and_says_nothing(example: Example, message: str) -> None:
    with pytest.raises(RemoteError) as refused:
        await example.ask(message)
    error = refused.value
    assert (error.code, error.reason, error.message) == (grpc.StatusCode.INTERNAL, "INTERNAL", "internal error")


async def test_an_exception_in_a_stream_is_internal_after_what_was_sent(example: Example) -> None:
    async with aclosing(example.watch("unknown", 2)) as events:
        assert [(await anext(events)).seq for _ in range(2)] == [1, 2]
        with pytest.raises(RemoteError) as refused:
            await anext(events)
    assert (refused.value.code, refused.value.message) == (grpc.StatusCode.INTERNAL, "internal error")


async def test_an_exception_s_words_are_in_no_log_and_its_type_is() -> None:
    async with running_example() as example:
        for message in ("unknown", "abandoned", "remote_away", "remote_fault"):
            with pytest.raises(RemoteError):
                await example.ask(message)
        with pytest.raises(RemoteError):
            async for _ in example.watch("unknown", 0):
                pass
        await example.process.stop()
        written = "\n".join(example.process.lines)
    assert '"error_type":"ValueError"' in written
    assert WORDS not in written


async def test_a_stream_whose_reader_goes_away_is_cancelled_and_cleans_up(example: Example) -> None:
    async with aclosing(example.watch("reader-gone", 1_000)) as events:
        await anext(events)
    await example.until_written("closed reader-gone")
    assert "finished reader-gone" not in example.process.lines


async def test_at_the_end_health_says_not_serving_while_a_stream_still_runs() -> None:
    async with running_example() as example, grpc.aio.insecure_channel(example.process.address) as channel:
        states = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=RPC_SERVICE))
        assert (await states.read()).status == SERVING
        async with aclosing(example.watch("long", 1_000)) as events:
            await anext(events)
            example.process.process.terminate()
            assert (await states.read()).status == NOT_SERVING
            await anext(events)
        states.cancel()


async def test_a_running_stream_is_allowed_to_finish() -> None:
    async with running_example() as example:
        seen = 0
        async for _ in example.watch("whole", 20):
            if seen == 0:
                example.process.process.terminate()
            seen += 1
        assert seen == 20
        assert await example.process.process.wait() == 0
        assert "finished whole" in example.process.lines


async def test_a_stream_that_outlasts_the_drain_is_cut_and_cleans_up() -> None:
    async with running_example(drain_seconds=0.3) as example:
        async with aclosing(example.watch("cut", 1_000)) as events:
            await anext(events)
            async with asyncio.timeout(10):
                assert await example.process.stop() == 0
        await example.until_written("closed cut")
        assert "finished cut" not in example.process.lines


async def test_who_only_watches_the_health_does_not_hold_up_the_end() -> None:
    async with (
        running_example(drain_seconds=60) as example,
        grpc.aio.insecure_channel(example.process.address) as other,
    ):
        states = health_pb2_grpc.HealthStub(other).Watch(health_pb2.HealthCheckRequest())
        assert (await states.read()).status == SERVING
        async with asyncio.timeout(10):
            assert await example.process.stop() == 0
        states.cancel()


async def test_a_port_that_is_taken_ends_the_start_with_one_line_and_code_2(example: Example) -> None:
    settings = {"ENGINE_ADDRESS": example.process.address, "INTERNAL_PUBLIC_KEYS": keys().public}
    code, output = await refused("tests.servers.example", settings)
    assert code == 2
    assert output == f"LINTELLO_ENGINE_ADDRESS: can't listen at {example.process.address}\n"


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:99999", "192.0.2.1:50051"])
async def test_an_address_nobody_can_listen_at_ends_the_start_with_one_line_and_code_2(address: str) -> None:
    code, output = await refused(
        "tests.servers.example", {"ENGINE_ADDRESS": address, "INTERNAL_PUBLIC_KEYS": keys().public}
    )
    assert code == 2
    assert output == f"LINTELLO_ENGINE_ADDRESS: can't listen at {address}\n"
