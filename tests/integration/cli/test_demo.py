"""What `make demo` runs."""

from pathlib import Path

from cli.local.folder import DataFolder
from cli.local.state import read_state
from tests.integration.cli.command import lintello


async def test_the_demo_thinks_shows_its_tree_and_says_how_to_go_on(tmp_path: Path) -> None:
    ended = await lintello("demo", "--data-dir", str(tmp_path / "data"), settings={"DEMO_EXIT": "1"})
    lines = ended.output.splitlines()
    assert (ended.code, ended.errors) == (0, "")
    assert sum(line.startswith("✅") for line in lines) >= 4
    ready = next(number for number, line in enumerate(lines) if line.startswith("LintellO is ready: "))
    url = lines[ready].removeprefix("LintellO is ready: ")
    conversation = next(line for line in lines if line.startswith("conversation ")).split()[1]
    end = lines.index(f"La page : {url}")
    assert ready < lines.index("Arbre de pensée") < end
    for line, needle in zip(lines[end : end + 5], (url, "ask", conversation, "LLM_API_KEY", "Ctrl-C"), strict=True):
        assert needle in line
    assert read_state(DataFolder(tmp_path / "data")) is None
