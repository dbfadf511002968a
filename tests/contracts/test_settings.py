"""kit/variables.txt is the list of all settings: each is read by somebody, and nobody reads another."""

import ast
import re

from kit.settings import PREFIX, Settings, known_names
from tests.contracts.discovery import ROOT, all_modules


def _settings_fields() -> set[str]:
    """The names every settings class reads."""
    modules = all_modules("services") + all_modules("gateway") + all_modules("cli")
    kinds = {
        kind
        for module in modules
        if module.__name__.endswith("settings")
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Settings)
    }
    return {name.upper() for kind in kinds for name in kind.model_fields}


def _texts_of_cli() -> set[str]:
    """Every text in the command line's code that may name a setting."""
    return {
        node.value
        for path in (ROOT / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_every_field_of_a_settings_class_is_in_the_list() -> None:
    assert _settings_fields() - set(known_names()) == set()


def test_every_name_in_the_list_is_read_by_somebody() -> None:
    by_cli = {text.removeprefix(PREFIX) for text in _texts_of_cli()}
    assert set(known_names()) - _settings_fields() - by_cli == set()


def test_every_setting_the_command_line_speaks_of_is_in_the_list() -> None:
    named = {name for text in _texts_of_cli() for name in re.findall(rf"{PREFIX}([A-Z][A-Z_]*[A-Z])", text)}
    assert named - set(known_names()) == set()
