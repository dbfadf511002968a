"""The Lua scripts say what they take and give."""

import re

import pytest

from services.quota.leases import read_scripts

SCRIPTS = read_scripts()


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_the_header_of_a_script_names_every_key_argument_and_the_result(name: str) -> None:
    header, _, body = SCRIPTS[name].partition("\n\n")
    for used in set(re.findall(r"(?:KEYS|ARGV)\[\d\]", body)):
        assert f"\n-- {used}  " in header
    assert "\n-- Result   " in header
    assert all(line.startswith("--") for line in header.splitlines())


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_every_script_drops_what_has_expired_by_the_server_s_clock_first(name: str) -> None:
    calls = re.findall(r"redis\.call\('(\w+)'", SCRIPTS[name])
    assert calls[:2] == ["TIME", "ZREMRANGEBYSCORE"]
