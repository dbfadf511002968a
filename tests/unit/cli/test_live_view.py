"""A run in a terminal."""

import io

from rich.console import Console

from cli.screen.live import LiveView
from cli.screen.progress import Progress
from tests.unit.cli import events
from tests.unit.cli.events import Event


class Terminal:
    """A terminal of a given size, with what stays on it and how a frame looks now."""

    def __init__(self, height: int = 40) -> None:
        self.console = Console(file=io.StringIO(), force_terminal=True, color_system=None, width=120, height=height)
        self.clock = 0.0
        self.view = LiveView(self.console, clock=lambda: self.clock)
        self.progress = Progress()

    def show(self, sequence: list[Event]) -> None:
        for event in sequence:
            self.progress.apply(event)
            self.view.show("", event, self.progress)

    def frame(self) -> list[str]:
        still = Console(file=io.StringIO(), width=120, height=self.console.height)
        still.print(self.view, end="")
        assert isinstance(still.file, io.StringIO)
        return [line.rstrip() for line in still.file.getvalue().splitlines()]

    def close(self) -> str:
        self.view.close(self.progress)
        assert isinstance(self.console.file, io.StringIO)
        return self.console.file.getvalue()


def test_a_running_step_shows_how_long_it_has_been_running() -> None:
    terminal = Terminal()
    try:
        terminal.show(events.chain()[:3])
        terminal.clock = 2.5
        (line,) = terminal.frame()
        assert line.startswith("🔍 1/5 Décomposition de la tâche…")
        assert "2.5 s" in line
    finally:
        terminal.close()


def test_a_finished_step_shows_what_it_took() -> None:
    terminal = Terminal()
    try:
        terminal.show(events.chain()[:4])
        (line,) = terminal.frame()
        assert line.split() == ["✅", "1/5", "Deux", "étapes", "retenues", "1.2", "s", "340", "tokens", "small"]
    finally:
        terminal.close()


def test_a_frame_is_never_taller_than_the_terminal() -> None:
    terminal = Terminal(height=12)
    try:
        terminal.show(events.chain()[:11])
        terminal.show([events.content("\n\n".join(f"Ligne {number}" for number in range(50)))])
        assert len(terminal.frame()) < 12
        assert terminal.frame()[-1] == "Ligne 49"
    finally:
        terminal.close()


def test_what_stays_is_every_step_the_whole_answer_the_tree_and_the_last_line() -> None:
    terminal = Terminal()
    terminal.show(events.chain())
    left = terminal.close()
    stays = left[left.rindex("✅ 1/5") :]
    assert all(summary in stays for _, summary in events.CHAIN)
    assert "La coopérative se finance de trois façons." in stays
    assert stays.index("Arbre de pensée") < stays.index(f"conversation {events.CONVERSATION}")
