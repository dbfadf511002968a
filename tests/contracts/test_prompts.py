"""Prompts say the same in every locale."""

from pathlib import Path
from string import Template

import pytest

from tests.contracts.discovery import ROOT

FOLDERS = sorted((ROOT / "services").glob("*/prompts"))


def _placeholders(folder: Path) -> dict[str, set[str]]:
    """Each file's placeholders."""
    return {
        path.relative_to(folder).as_posix(): set(Template(path.read_text(encoding="utf-8")).get_identifiers())
        for path in folder.rglob("*.md")
    }


def test_there_are_prompts() -> None:
    assert FOLDERS


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_french_and_english_have_the_same_files_with_the_same_placeholders(folder: Path) -> None:
    french, english = _placeholders(folder / "fr"), _placeholders(folder / "en")
    assert french
    assert french == english


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_there_are_the_locales_french_and_english_and_no_others(folder: Path) -> None:
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"en", "fr"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_no_prompt_is_empty_or_has_a_stray_dollar(folder: Path) -> None:
    for path in folder.rglob("*.md"):
        content = path.read_text(encoding="utf-8")
        assert content.strip(), path.name
        assert Template(content).is_valid(), path.name
