"""The books, in a real PostgreSQL through the real service."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from asyncpg import Connection, connect
from google.protobuf.timestamp_pb2 import Timestamp
from lintello.common.v1 import run_pb2

from kit.errors import RemoteError
from tests.integration.quota.client import BEGAN, Quota, usage_request
from tests.servers.identity import USER

Usage = run_pb2.Usage


@pytest.fixture
async def books(books_url: str) -> AsyncIterator[Connection]:
    """The books, read by SQL."""
    connection = await connect(books_url)
    await connection.set_type_codec("jsonb", encoder=orjson.dumps, decoder=orjson.loads, schema="pg_catalog")
    yield connection
    await connection.close()


async def row(books: Connection, run_id: str) -> dict[str, Any]:
    """The one row of a run."""
    (found,) = await books.fetch("SELECT * FROM quota.usage_log WHERE run_id = $1", uuid.UUID(run_id))
    return dict(found)


async def test_a_run_is_recorded_with_all_that_was_told(quota: Quota, books: Connection) -> None:
    request = usage_request()
    assert await quota.record(request)
    found = await row(books, request.run_id)
    recorded_at = found.pop("at")
    assert abs(recorded_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert found == {
        "run_id": uuid.UUID(request.run_id),
        "user": USER.user,
        "subscription": USER.subscription,
        "status": "done",
        "mode": "analyse",
        "schema": "tree",
        "node_count": 7,
        "usage": {"small": {"input_tokens": 100, "output_tokens": 20, "estimated": False}},
        "cost_eur": 0.25,
        "fallbacks": 1,
        "retries": 2,
        "partial": False,
        "estimated": False,
        "duration_ms": 4_500,
        "started_at": BEGAN,
    }


async def test_a_classic_answer_in_no_mode_is_recorded_too(quota: Quota, books: Connection) -> None:
    request = usage_request(mode="", schema="", node_count=0, usage=[], cost_eur=0, fallbacks=0, retries=0)
    assert await quota.record(request)
    found = await row(books, request.run_id)
    assert (found["mode"], found["schema"], found["usage"]) == ("", "", {})


@pytest.mark.parametrize("status", ["done", "partial", "stopped", "failed"])
async def test_every_way_to_end_is_recorded(quota: Quota, books: Connection, status: str) -> None:
    request = usage_request(status=run_pb2.RunStatus.Value(f"RUN_STATUS_{status.upper()}"), partial=status != "done")
    await quota.record(request)
    found = await row(books, request.run_id)
    assert (found["status"], found["partial"]) == (status, status != "done")


async def test_the_same_run_again_changes_nothing(quota: Quota, books: Connection) -> None:
    request = usage_request()
    await quota.record(request)
    before = await row(books, request.run_id)
    again = usage_request(run_id=request.run_id.upper(), node_count=99, usage=[])
    assert not await quota.record(again, replace(USER, user="somebody-else"))
    assert await row(books, request.run_id) == before


async def test_of_twenty_who_record_one_run_at_one_moment_one_is_the_first(quota: Quota, books: Connection) -> None:
    request = usage_request()
    answers = await asyncio.gather(*(quota.record(request) for _ in range(20)))
    assert sorted(answers) == [False] * 19 + [True]
    await row(books, request.run_id)


async def test_user_and_subscription_are_the_token_s(quota: Quota, books: Connection) -> None:
    request = usage_request()
    await quota.record(request, replace(USER, user="user-é", subscription="free"))
    found = await row(books, request.run_id)
    assert (found["user"], found["subscription"]) == ("user-é", "free")


async def test_usage_is_kept_by_model_and_one_estimate_marks_the_run(quota: Quota, books: Connection) -> None:
    usage = [
        Usage(model="large", input_tokens=2**62, output_tokens=3),
        Usage(model="small", input_tokens=10, output_tokens=5),
        Usage(model="small", input_tokens=1, output_tokens=2, estimated=True),
    ]
    request = usage_request(usage=usage)
    await quota.record(request)
    found = await row(books, request.run_id)
    assert found["usage"] == {
        "large": {"input_tokens": 2**62, "output_tokens": 3, "estimated": False},
        "small": {"input_tokens": 11, "output_tokens": 7, "estimated": True},
    }
    assert found["estimated"]


async def test_a_model_s_name_is_cleaned_like_any_text(quota: Quota, books: Connection) -> None:
    request = usage_request(usage=[Usage(model="sm\0all\u2028", input_tokens=1)])
    await quota.record(request)
    assert list((await row(books, request.run_id))["usage"]) == ["small\u2028"]


NEGATIVE = {"node_count": -1, "fallbacks": -1, "retries": -1, "duration_ms": -1}


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        *((name, {name: value}) for name, value in NEGATIVE.items()),
        ("run_id", {"run_id": "../../x"}),
        ("run_id", {"run_id": ""}),
        ("status", {"status": run_pb2.RUN_STATUS_RUNNING}),
        ("status", {"status": run_pb2.RUN_STATUS_UNSPECIFIED}),
        ("status", {"status": 99}),
        ("mode", {"mode": "Ana lyse"}),
        ("mode", {"mode": "a" * 51}),
        ("schema", {"schema": "tree;"}),
        ("cost_eur", {"cost_eur": -0.01}),
        ("cost_eur", {"cost_eur": float("nan")}),
        ("cost_eur", {"cost_eur": float("inf")}),
        ("usage", {"usage": [Usage(model=f"m{number}") for number in range(101)]}),
        ("usage.model", {"usage": [Usage(model="m" * 201)]}),
        ("usage.input_tokens", {"usage": [Usage(model="m", input_tokens=-1)]}),
        ("usage.output_tokens", {"usage": [Usage(model="m", output_tokens=-1)]}),
        ("started_at", {"started_at": None}),
        ("started_at", {"started_at": Timestamp(seconds=2**60)}),
    ],
)
async def test_a_bad_field_is_named_and_nothing_is_recorded(
    quota: Quota, books: Connection, field: str, fields: Mapping[str, Any]
) -> None:
    before = await books.fetchval("SELECT count(*) FROM quota.usage_log")
    with pytest.raises(RemoteError) as refused:
        await quota.record(usage_request(**fields))
    assert (refused.value.reason, list(refused.value.fields)) == ("INVALID_ARGUMENT", [field])
    assert await books.fetchval("SELECT count(*) FROM quota.usage_log") == before


async def test_connections_that_were_cut_are_not_noticed(quota: Quota, books: Connection) -> None:
    for _ in range(3):
        await quota.record()
        await books.execute(
            """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()"""
        )
    assert await quota.record()
