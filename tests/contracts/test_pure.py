"""The pure files import the standard library only (numpy too, for vectors)."""

import ast
import sys
from pathlib import Path

import pytest

from tests.contracts.discovery import ROOT

ALLOWED = {"tree.py": set[str](), "policy.py": set[str](), "plan.py": set[str](), "cosine.py": {"numpy"}}
PURE = sorted(path for path in (ROOT / "services").glob("*/*.py") if path.name in ALLOWED)


def test_the_thought_tree_is_among_them() -> None:
    assert ROOT / "services" / "treestore" / "tree.py" in PURE


@pytest.mark.parametrize("path", PURE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_pure_file_imports_the_standard_library_only(path: Path) -> None:
    assert _imported(path) - sys.stdlib_module_names - ALLOWED[path.name] == set()


def _imported(path: Path) -> set[str]:
    """The top names of everything it imports, anywhere in it; a relative import counts as one of ours."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." if node.level else str(node.module).partition(".")[0])
    return names
