"""The modes, read from their file and checked at start, and which one a message belongs to."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from kit.errors import InvalidField
from services.engine.complexity import fold, stem_pattern, stems_in
from services.engine.modes.config import ChainConfig
from services.engine.subscriptions import Subscription

FALLBACK = "conversation"
SHIPPED = Path(__file__).with_name("modes.yaml")


class BadModes(Exception):
    """The file of modes is wrong; the text names the mode and the field."""


class ModeUnknown(InvalidField):
    """There is no such mode, or it isn't enabled."""


class ModeRow(BaseModel):
    """One mode as its file has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    slug: str
    icon: str
    name: dict[Literal["fr", "en"], str]
    keywords: tuple[str, ...]
    thinking_schema: Literal["chain"] | None
    thinking_config: ChainConfig | None = None
    discovery: bool
    enabled: bool = True


@dataclass(frozen=True)
class Mode:
    """A way to ask: how it is shown, how it is recognised, how it thinks."""

    slug: str
    icon: str
    name: dict[Literal["fr", "en"], str]
    keywords: tuple[re.Pattern[str], ...]
    config: ChainConfig | None
    """None: it never thinks."""
    schema: str
    """chain, or empty."""
    discovery: bool
    enabled: bool

    @property
    def display_template(self) -> str:
        """How its thinking is shown."""
        return self.config.display_template if self.config else "default"

    def may_think(self, subscription: Subscription) -> bool:
        """Whether a subscription may think in it: it has a schema, and a limited one is in a discovery mode."""
        return self.config is not None and (self.discovery or not subscription.discovery_only)

    @property
    def prompt(self) -> str:
        """The name of its system prompt."""
        return f"modes/{self.slug}"


class Catalog:
    """All modes, in the order in which they are shown."""

    def __init__(self, modes: list[Mode]) -> None:
        self._modes = {mode.slug: mode for mode in modes}
        if FALLBACK not in self._modes:
            raise BadModes(f"{FALLBACK}: this mode must be there")

    @classmethod
    def load(cls, path: Path = SHIPPED) -> "Catalog":
        """Read a file of modes. Raises BadModes."""
        modes = []
        for row in yaml.safe_load(path.read_text(encoding="utf-8")):
            try:
                parsed = ModeRow.model_validate(row)
            except ValidationError as error:
                first = error.errors()[0]
                place = ".".join(str(part) for part in first["loc"])
                raise BadModes(f"{row.get('slug', '?')}: {place}: {first['msg']}") from None
            modes.append(_mode(parsed))
        return cls(modes)

    def enabled(self) -> list[Mode]:
        """The modes a question can be asked in."""
        return [mode for mode in self._modes.values() if mode.enabled]

    def get(self, slug: str, field: str = "mode") -> Mode:
        """The mode of this slug. Raises ModeUnknown, which names the request's field."""
        mode = self._modes.get(slug)
        if mode is None or not mode.enabled:
            raise ModeUnknown(field, "there is no such mode")
        return mode

    def detect(self, message: str) -> Mode | None:
        """The mode most of whose keywords the user's words hold; None when no keyword is found, or two modes tie."""
        folded = fold(message)
        counts = {mode.slug: stems_in(folded, mode.keywords) for mode in self.enabled()}
        ranked = sorted(counts.items(), key=lambda item: -item[1])
        best, second = ranked[0], ranked[1] if len(ranked) > 1 else ("", 0)
        if best[1] == 0 or best[1] == second[1]:
            return None
        return self._modes[best[0]]


def _mode(row: ModeRow) -> Mode:
    config = (row.thinking_config or ChainConfig()) if row.thinking_schema else None
    return Mode(
        slug=row.slug,
        icon=row.icon,
        name=row.name,
        keywords=tuple(stem_pattern(stem) for stem in row.keywords),
        config=config,
        schema=row.thinking_schema or "",
        discovery=row.discovery,
        enabled=row.enabled,
    )
