"""The quota service as a process: its settings and its end."""

import pytest

from tests.integration.quota.client import Quota
from tests.servers.identity import Keys
from tests.servers.process import refused, running

GOOD = {"REDIS_URL": "redis://127.0.0.1:1", "QUOTA_ADDRESS": "127.0.0.1:0"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_URL", "http://secret-host/"),
        ("REDIS_URL", "redis://:secret-word@host:port"),
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


async def test_sigterm_ends_it_with_code_0(redis_url: str, identity: Keys) -> None:
    settings = {"REDIS_URL": redis_url, "INTERNAL_PUBLIC_KEYS": identity.public}
    async with running("quota", settings) as process, Quota.at(process, identity) as quota:
        await quota.acquire()
        assert await process.stop() == 0
