"""A run as plain lines, for a pipe or a file."""

import sys
from typing import TextIO

from cli.screen.format import printable, text
from cli.screen.lines import last_line, notice_line, step_line
from cli.screen.progress import Event, Progress, read_step
from cli.screen.tree import print_tree
from cli.texts import say


class PlainView:
    """One line per event worth it, the answer as it streams, then the tree.

    Lines that come while the answer is being written (the end of its own step) wait until it is whole.
    """

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._answering = False
        self._waiting: list[str] = []

    def notice(self, line: str) -> None:
        """See View. In the middle of the answer it goes to standard error, and the answer stays whole."""
        if self._answering:
            print(line, file=sys.stderr, flush=True)
        else:
            self._line(line)

    def show(self, raw: str, event: Event, progress: Progress) -> None:
        """See View."""
        match event.get("type"):
            case "content":
                self._answer(printable(text(event.get("content"))))
            case "thinking_step":
                self._line(step_line(read_step(event)))
            case "thinking_delta":
                pass
            case _:
                if line := notice_line(event):
                    self._line(line)

    def close(self, progress: Progress) -> None:
        """See View."""
        if self._answering:
            self._output.write("\n\n" if self._waiting else "\n")
            self._answering = False
        for line in self._waiting:
            self._line(line)
        if progress.done is None:
            return
        if progress.tree is not None:
            self._output.write("\n")
            nodes = progress.tree.get("nodes")
            print_tree(self._output, say("tree.title"), nodes if isinstance(nodes, list) else [])
        self._output.write("\n")
        self._line(last_line(progress))

    def _answer(self, piece: str) -> None:
        if not self._answering:
            self._answering = True
            self._output.write("\n")
        self._output.write(piece)
        self._output.flush()

    def _line(self, line: str) -> None:
        if self._answering:
            self._waiting.append(line)
            return
        self._output.write(f"{line}\n")
        self._output.flush()
