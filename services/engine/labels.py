"""What people read while it thinks: texts by locale and icons, from their files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from services.engine.domain import Role

FOLDER = Path(__file__).with_name("prompts")


@dataclass(frozen=True)
class Icons:
    """The icon of a step by role while it runs, and how every step ends."""

    started: dict[str, str]
    completed: str
    failed: str


class Labels:
    """The texts of one locale."""

    def __init__(self, locale: str, folder: Path = FOLDER) -> None:
        self._texts: dict[str, Any] = _read(folder / locale / "labels.yaml")

    def started(self, role: Role, title: str = "") -> str:
        """One line for a step that begins."""
        return str(self._texts["started"][role.value]).format(title=title)

    def completed(self, key: str, **values: object) -> str:
        """One line for a step that has ended, where its answer brings none."""
        return str(self._texts["completed"][key]).format(**values)

    def failed(self, reason: str) -> str:
        """One line for a step that failed."""
        return str(self._texts["failed"].get(reason, self._texts["failed"]["unavailable"]))

    def trouble(self, code: str) -> str:
        """What an `error` event says."""
        return str(self._texts["trouble"][code])

    def phrase(self, key: str) -> str:
        """A phrase that stands in a prompt."""
        return str(self._texts[key])


def load_icons(folder: Path = FOLDER) -> Icons:
    """The icons of all steps."""
    data = _read(folder / "icons.yaml")
    return Icons(data["started"], data["completed"], data["failed"])


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return data
