"""A run as JSON, one event a line, exactly as the gateway sent it."""

import sys
from typing import TextIO

from cli.screen.progress import Event, Progress


class RawView:
    """For programs: nothing but events on the output; notices go to standard error."""

    def __init__(self, output: TextIO) -> None:
        self._output = output

    def notice(self, line: str) -> None:
        """See View."""
        print(line, file=sys.stderr)

    def show(self, raw: str, event: Event, progress: Progress) -> None:
        """See View."""
        self._output.write(f"{raw}\n")
        self._output.flush()

    def close(self, progress: Progress) -> None:
        """See View: every event is written already."""
