"""A measured figure beside its bound, and the table they are printed as."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

HEAD = f"{'':<44} {'median':>7} {'':<3} {'min–max':>14} {'bound':>8}"


@dataclass(frozen=True)
class Figure:
    """What was measured, several times: the median counts. One of the two bounds is given."""

    name: str
    values: Sequence[float]
    unit: str
    at_least: float | None = None
    at_most: float | None = None
    aside: str = ""
    """Absolute figures that explain the ratio."""

    @property
    def median(self) -> float:
        """The figure."""
        return statistics.median(self.values)

    @property
    def kept(self) -> bool:
        """Whether it is within its bound."""
        above = self.at_least is None or self.median >= self.at_least
        return above and (self.at_most is None or self.median <= self.at_most)

    def row(self) -> str:
        """A line of the table."""
        bound = f"≥ {self.at_least:g}" if self.at_least is not None else f"≤ {self.at_most:g}"
        spread = f"{min(self.values):.2f}–{max(self.values):.2f}"
        verdict = "kept" if self.kept else "NOT KEPT"
        return (
            f"{self.name:<44} {self.median:>7.2f} {self.unit:<3} {spread:>14} {bound:>8} {self.unit:<3} {verdict:<9} "
            f"{self.aside}"
        )
