"""What a soak has found."""

from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class Report:
    """What was found wrong, by what it is about; and some counts."""

    problems: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    counts: dict[str, int] = field(default_factory=dict)

    def expect(self, about: str, holds: bool, otherwise: str) -> None:
        """Note a problem unless something holds."""
        if not holds:
            self.problems[about].append(otherwise)
