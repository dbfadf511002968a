"""Prompts: Markdown files with `$placeholders`, one folder per locale, loaded and checked at start."""

from collections.abc import Mapping
from pathlib import Path
from string import Template


class BadPrompts(Exception):
    """The prompt folders don't fit together; the text names the file."""


class Prompts:
    """All prompts of one service, by locale and name (the file's path without its ending)."""

    def __init__(self, folder: Path, locales: tuple[str, ...] = ("fr", "en")) -> None:
        """Read every `*.md` under each locale's folder.

        Raises BadPrompts when a locale lacks a file, or the same file has other placeholders in another locale.
        """
        self._templates: dict[str, dict[str, Template]] = {locale: _read(folder / locale) for locale in locales}
        first = locales[0]
        for locale in locales[1:]:
            _compare(self._templates[first], self._templates[locale], locale)

    def names(self) -> frozenset[str]:
        """The names every locale has."""
        return frozenset(next(iter(self._templates.values())))

    def render(self, locale: str, name: str, values: Mapping[str, object] | None = None) -> str:
        """The prompt with every placeholder filled. Raises KeyError for an unknown name or a missing value."""
        return self._templates[locale][name].substitute(values or {}).strip()


def _read(folder: Path) -> dict[str, Template]:
    found = {
        path.relative_to(folder).with_suffix("").as_posix(): Template(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.md"))
    }
    if not found:
        raise BadPrompts(f"{folder}: no prompts here")
    for name, template in found.items():
        if not template.is_valid():
            raise BadPrompts(f"{folder / name}.md: a $ that begins no placeholder")
    return found


def _compare(first: dict[str, Template], other: dict[str, Template], locale: str) -> None:
    for name in sorted(first.keys() ^ other.keys()):
        raise BadPrompts(f"{locale}/{name}.md: not in every locale")
    for name, template in first.items():
        if set(template.get_identifiers()) != set(other[name].get_identifiers()):
            raise BadPrompts(f"{locale}/{name}.md: its placeholders differ from those of the other locales")
