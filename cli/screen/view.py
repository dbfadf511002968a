"""What a way of showing a run must do."""

from typing import Protocol

from cli.screen.progress import Event, Progress


class View(Protocol):
    """Shows one run as it comes in."""

    def notice(self, line: str) -> None:
        """Show a line that isn't the run's own, at once."""

    def show(self, raw: str, event: Event, progress: Progress) -> None:
        """Show one event; `raw` is its JSON as received, `progress` has it taken in already."""

    def close(self, progress: Progress) -> None:
        """The run is over, or nothing more of it will come: leave a whole picture. Called once."""
