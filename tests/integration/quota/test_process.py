"""The quota service as a process: its settings and its end."""

from urllib.parse import urlsplit, urlunsplit

import pytest
from redis.asyncio import Redis

from cli.local.ports import free_port
from tests.integration.quota.client import Quota
from tests.servers.database import new_database
from tests.servers.identity import Keys
from tests.servers.process import refused, running
from tests.servers.scrape import scrape

GOOD = {
    "REDIS_URL": "redis://127.0.0.1:1",
    "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere",
    "QUOTA_ADDRESS": "127.0.0.1:0",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "http://secret-host/"),
        ("REDIS_URL", "redis://:secret-word@host:port"),
        ("DATABASE_URL", "mysql://secret-host/db"),
        ("DATABASE_URL", "postgresql://secret-user@host:port/db"),
        ("DATABASE_URL", ""),
        ("MAX_THINKS_CONCURRENT", "0"),
        ("MAX_THINKS_CONCURRENT", "secret-word"),
        ("LEASE_SECONDS", "-1"),
        ("INTERNAL_PUBLIC_KEYS", "engine:secret-word"),
        ("REDIS_URI", "redis://secret-host"),
    ],
)
async def test_a_bad_setting_ends_the_start_with_one_line_that_names_it(identity: Keys, name: str, value: str) -> None:
    code, output = await refused("services.quota", {**GOOD, "INTERNAL_PUBLIC_KEYS": identity.public, name: value})
    assert code == 2
    assert len(output.splitlines()) == 1
    assert output.startswith(f"LINTELLO_{name}: ")
    assert "secret" not in output


async def test_a_database_without_books_stops_the_start_and_says_what_to_do(
    settings: dict[str, str], database_url: str
) -> None:
    async with new_database(database_url) as url:
        code, output = await refused("services.quota", {**settings, "DATABASE_URL": url})
    assert (code, output) == (2, "LINTELLO_DATABASE_URL: it has no quota tables; run lintello migrate\n")


@pytest.mark.parametrize(("part", "said"), [("database", "no such database"), ("user", "refuses this user")])
async def test_a_database_or_user_that_is_not_there_stops_the_start(
    settings: dict[str, str], part: str, said: str
) -> None:
    parts = urlsplit(settings["DATABASE_URL"])
    host = f"{parts.hostname}:{parts.port}"
    bad = parts._replace(path="/nowhere") if part == "database" else parts._replace(netloc=f"nobody:x@{host}")
    code, output = await refused("services.quota", {**settings, "DATABASE_URL": urlunsplit(bad)})
    assert (code, output.count("\n")) == (2, 1), output
    assert said in output


async def test_sigterm_ends_it_with_code_0(settings: dict[str, str], identity: Keys) -> None:
    async with running("quota", settings) as process, Quota.at(process, identity) as quota:
        await quota.acquire()
        await quota.record()
        assert await process.stop() == 0


async def test_its_metrics_say_how_many_slots_there_are_and_how_many_are_taken(
    settings: dict[str, str], identity: Keys, redis: Redis
) -> None:
    port = free_port()
    measured = {**settings, "METRICS_PORT": str(port)}
    async with running("quota", measured) as process, Quota.at(process, identity) as quota:
        await quota.acquire()
        await quota.acquire()
        text = await scrape(port)
    assert "\nlintello_slots 20.0\n" in text
    assert "\nlintello_slots_taken 2.0\n" in text


async def test_without_redis_its_metrics_leave_out_what_they_can_not_know(settings: dict[str, str]) -> None:
    port = free_port()
    async with running("quota", {**settings, "METRICS_PORT": str(port), "REDIS_URL": GOOD["REDIS_URL"]}):
        text = await scrape(port)
    assert "\nlintello_slots 20.0\n" in text
    assert "lintello_slots_taken" not in text
