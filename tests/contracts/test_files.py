"""No file names a package registry's host or a place on somebody's machine."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.contracts.discovery import ROOT

HOSTS = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|crates|rubygems|docker|ghcr|quay|gcr)\.(?:org|io|com|dev)\b"
    r"|proxy\.golang\.|--(?:extra-)?index-url|--find-links|--trusted-host",
    re.IGNORECASE,
)
PLACES = re.compile(r"(?<![\w.$}>])/(?:home|Users|root|work|mnt)/\w")


def _texts() -> dict[str, str]:
    """Every text file that is or would be committed."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    # Whose checkout it is doesn't matter to a reader.
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, str] = {}
    for name in filter(None, listing.stdout.split("\0")):
        content = _content(ROOT / name)
        if content is not None:
            found[name] = content
    return found


def _content(path: Path) -> str | None:
    """None for a file that isn't text, or was deleted since the last commit."""
    try:
        return path.read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return None


@pytest.mark.parametrize("forbidden", [HOSTS, PLACES], ids=["registry hosts", "places on a machine"])
def test_no_file_holds(forbidden: re.Pattern[str]) -> None:
    texts = _texts()
    assert len(texts) > 50
    held = {name: match[0] for name, text in texts.items() if (match := forbidden.search(text))}
    held.pop(Path(__file__).relative_to(ROOT).as_posix(), None)
    assert held == {}


@pytest.mark.parametrize("text", ["https://pypi.org/simple", "--index-url x", "files.pythonhosted.org"])
def test_a_registry_s_host_would_be_found(text: str) -> None:
    assert HOSTS.search(text)


@pytest.mark.parametrize("text", ["/home/ada/x", "(/Users/ada)", '"/root/x"'])
def test_a_place_on_a_machine_would_be_found(text: str) -> None:
    assert PLACES.search(text)
