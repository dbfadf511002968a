"""A run in a terminal: a live list of steps, the answer as it streams, then all of it to stay."""

import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.markdown import Markdown
from rich.segment import Segment
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from cli.screen.format import printable, seconds, tokens
from cli.screen.lines import last_line, notice_line
from cli.screen.progress import Event, Progress
from cli.screen.tree import draw
from cli.texts import say

FRAMES_PER_SECOND = 10
ROOM_FOR_MODEL = 110
"""Columns of a terminal that has room for each step's model beside its summary."""

ROWS_KEPT = 3
"""Rows of the terminal left free below the moving part, so that it never scrolls."""


class LiveView:
    """While it runs: the steps, and below them as much of the answer's end as fits. Afterwards: the whole, printed."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._progress = Progress()
        self._began: dict[str, float] = {}
        self._spinner = Spinner("dots")
        self._live = Live(
            self, console=console, refresh_per_second=FRAMES_PER_SECOND, transient=True, vertical_overflow="crop"
        )

    def notice(self, line: str) -> None:
        """See View."""
        self._console.print(Text(line, style="yellow"))

    def show(self, raw: str, event: Event, progress: Progress) -> None:
        """See View."""
        self._progress = progress
        if not self._live.is_started:
            self._live.start()
        match event.get("type"):
            case "thinking_step":
                for node_id in progress.steps:
                    self._began.setdefault(node_id, self._clock())
            case "thinking_completed" | "thinking_delta" | "content":
                pass
            case _:
                if line := notice_line(event):
                    self._console.print(Text(line, style="dim"))

    def close(self, progress: Progress) -> None:
        """See View."""
        self._progress = progress
        self._live.stop()
        if progress.steps:
            self._console.print(self._steps(progress))
        if progress.answer:
            self._console.print()
            self._console.print(Markdown(printable(progress.answer)))
        if progress.done is None:
            return
        if progress.tree is not None:
            nodes = progress.tree.get("nodes")
            self._console.print()
            self._console.print(draw(say("tree.title"), nodes if isinstance(nodes, list) else []))
        self._console.print()
        self._console.print(Text(last_line(progress), style="dim"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The moving part, drawn anew for each frame."""
        progress = self._progress
        steps = console.render_lines(self._steps(progress), options, pad=False) if progress.steps else []
        answer = console.render_lines(Markdown(printable(progress.answer)), options, pad=False)
        room = console.size.height - len(steps) - ROWS_KEPT
        shown = [*steps, [Segment("")], *answer[-room:]] if progress.answer and room > 0 else steps
        if not shown:
            shown = console.render_lines(self._waiting(), options, pad=False)
        for line in shown[-max(console.size.height - 1, 1) :]:
            yield from line
            yield Segment.line()

    def _waiting(self) -> Table:
        row = Table.grid(padding=(0, 1))
        row.add_row(self._spinner, Text(say("run.waiting"), style="dim"))
        return row

    def _steps(self, progress: Progress) -> Table:
        grid = Table.grid(padding=(0, 1))
        grid.add_column(width=2)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1, overflow="fold")
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(justify="right", no_wrap=True)
        grid.add_column(no_wrap=True, max_width=24)
        grid.add_column(width=1)
        # A copy, made at one stroke: frames are drawn by a thread of their own, while events come in.
        for step in tuple(progress.steps.values()):
            running = step.status == "started" and self._live.is_started
            passed = step.duration_ms
            if running:
                passed = (self._clock() - self._began.get(step.node_id, self._clock())) * 1000
            grid.add_row(
                step.icon,
                Text(step.place, style="dim"),
                Text(step.summary, style=_STYLES[step.status]),
                Text(seconds(passed), style="dim"),
                Text("" if running else tokens(step.tokens), style="dim"),
                Text(step.model if self._console.width >= ROOM_FOR_MODEL else "", style="dim"),
                self._spinner if running else "",
            )
        return grid


_STYLES: dict[str, str] = {"started": "bold", "completed": "", "failed": "red"}
