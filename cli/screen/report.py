"""The report of `doctor`: a table in a terminal, lines in a pipe."""

from collections.abc import Sequence
from typing import Protocol, TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli.screen.format import one_line
from cli.texts import say

STYLES = {"ok": "green", "info": "cyan", "warning": "yellow", "failed": "bold red"}


class Line(Protocol):
    """One finding: what it is about, how it stands (ok, info, warning, failed), and what there is to know."""

    @property
    def matter(self) -> str:
        """What it is about."""

    @property
    def state(self) -> str:
        """How it stands."""

    @property
    def detail(self) -> str:
        """What there is to know."""


def print_report(lines: Sequence[Line], output: TextIO) -> None:
    """Print the findings in their order."""
    if not output.isatty():
        for line in lines:
            output.write(f"{say(f'doctor.{line.state}')} · {line.matter} : {one_line(line.detail)}\n")
        return
    table = Table(say("doctor.column_check"), say("doctor.column_state"), say("doctor.column_detail"))
    for line in lines:
        state = Text(say(f"doctor.{line.state}"), style=STYLES[line.state])
        table.add_row(Text(line.matter), state, Text(one_line(line.detail)))
    Console(file=output).print(table)
