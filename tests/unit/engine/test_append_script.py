"""The script that writes to a replay log says what it takes and gives."""

import re

from services.engine.adapters.replay import SCRIPT

HEADER, _, BODY = SCRIPT.read_text(encoding="utf-8").partition("\n\n")


def test_its_header_names_every_key_argument_and_the_result() -> None:
    for used in set(re.findall(r"(?:KEYS|ARGV)\[\d\]", BODY)):
        assert f"\n-- {used}  " in HEADER
    assert "\n-- Result   " in HEADER
    assert all(line.startswith("--") for line in HEADER.splitlines())


def test_it_writes_nothing_before_everything_was_checked() -> None:
    calls = re.findall(r"redis\.call\('(\w+)'", BODY)
    assert calls == ["XREVRANGE", "XRANGE", "XADD", "EXPIRE"]
    assert BODY.rindex("return -2") < BODY.index("XADD")
