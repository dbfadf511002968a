"""What is generated is what the generator makes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contracts.discovery import ROOT

GENERATED = ROOT / "protos" / "gen"


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the generator makes now."""
    out = tmp_path_factory.mktemp("gen")
    plugins = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{plugins}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    subprocess.run([sys.executable, str(ROOT / "protos" / "generate.py"), str(out)], env=environment, check=True)
    return _contents(out)


def test_the_generator_makes_the_files_that_are_there(fresh: dict[str, bytes]) -> None:
    assert sorted(fresh) == sorted(_contents(GENERATED))


def test_the_files_that_are_there_are_the_generator_s_byte_for_byte(fresh: dict[str, bytes]) -> None:
    there = _contents(GENERATED)
    assert [name for name, content in fresh.items() if there.get(name) != content] == []


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
