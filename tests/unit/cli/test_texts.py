"""What the command line says, in both languages."""

import re
import string
from pathlib import Path

import pytest

import cli
from cli.local.process import EventKind
from cli.texts import LOCALES, say, table

SOURCES = Path(cli.__file__).parent


def slots(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def test_both_languages_have_the_same_keys() -> None:
    assert table("fr").keys() == table("en").keys()


@pytest.mark.parametrize("key", sorted(table("fr")))
def test_both_languages_fill_in_the_same_slots(key: str) -> None:
    assert slots(table("fr")[key]) == slots(table("en")[key])


@pytest.mark.parametrize("name", LOCALES)
def test_no_text_is_empty_or_longer_than_a_line(name: str) -> None:
    assert all(text.strip() and "\n" not in text for text in table(name).values())


def test_every_key_the_code_names_exists() -> None:
    folders = [SOURCES / "commands", SOURCES / "screen"]
    files = [SOURCES / "main.py", *(path for folder in folders for path in folder.glob("*.py"))]
    named = {key for path in files for key in re.findall(r'say\(\s*"([a-z_.]+)"', path.read_text("utf-8"))}
    assert len(named) > 60
    assert named <= table("fr").keys()


def test_an_unknown_language_falls_back_to_french(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINTELLO_LOCALE", "tlh")
    assert say("run.partial") == "partiel"


def test_event_kinds_are_those_that_are_worded() -> None:
    from typing import get_args

    from cli.commands.stack_events import line_for

    details = {"port_moved": "8080 8081"}
    lines = {kind: line_for(kind, "engine", details.get(kind, "1")) for kind in get_args(EventKind)}
    assert [kind for kind, line in lines.items() if line is None] == ["starting"]
