"""Every service has the same files, a table of access with every call, and a table of errors with every exception."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest
from lintello.common.v1.reason_pb2 import Reason

import kit.errors
import kit.serve
from kit.errors import Refusal, refusal_for
from tests.contracts.discovery import ROOT, SERVICES, all_modules, service_module, wire_modules

REASONS = {name.removeprefix("REASON_") for name in Reason.DESCRIPTOR.values_by_name} - {"UNSPECIFIED"}


def test_there_are_services() -> None:
    assert {"engine", "treestore", "quota"} <= set(SERVICES)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_has_the_files_every_service_has(service: str) -> None:
    for name in ("__init__", "__main__", "settings", "servicer", "wire", "errors"):
        assert (ROOT / "services" / service / f"{name}.py").is_file(), name


@pytest.mark.parametrize("service", SERVICES)
def test_every_call_is_in_the_table_of_access_and_nothing_else_is(service: str) -> None:
    calls = {
        f"/{descriptor.full_name}/{method.name}"
        for module in wire_modules(service)
        for descriptor in module.DESCRIPTOR.services_by_name.values()
        for method in descriptor.methods
    }
    access = service_module(service, "servicer").ACCESS
    assert set(access) == calls
    assert set(access.values()) <= {"user", "service", "admin"}


@pytest.mark.parametrize("service", SERVICES)
def test_every_exception_of_a_service_is_in_its_table_of_errors_or_caught_by_name(service: str) -> None:
    table = service_module(service, "errors").ERRORS
    caught = _caught(f"services.{service}")
    lacking = [
        f"{kind.__module__}.{kind.__qualname__}"
        for kind in _exceptions(f"services.{service}")
        if refusal_for(kind.__new__(kind), table) is None and kind.__name__ not in caught
    ]
    assert lacking == []


@pytest.mark.parametrize("service", SERVICES)
def test_every_exception_named_in_a_service_s_errors_is_in_the_table(service: str) -> None:
    module = service_module(service, "errors")
    named = {kind for kind in vars(module).values() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert named - set(module.ERRORS) == set()


@pytest.mark.parametrize("service", SERVICES)
def test_every_reason_of_a_service_is_on_the_wire(service: str) -> None:
    rows = service_module(service, "errors").ERRORS.values()
    assert {row.reason for row in rows} <= REASONS


@pytest.mark.parametrize("module", [kit.errors, kit.serve])
def test_every_reason_of_the_kit_is_on_the_wire(module: Any) -> None:
    rows = [value for value in vars(module).values() if isinstance(value, Refusal)]
    rows += kit.errors.COMMON.values()
    assert rows
    assert {row.reason for row in rows} <= REASONS


def _exceptions(package: str) -> list[type[Exception]]:
    """The package's own exceptions, but for those that are private to a file or stop the start (Bad…)."""
    return [
        kind
        for module in all_modules(package)
        for kind in vars(module).values()
        if inspect.isclass(kind)
        and issubclass(kind, Exception)
        and kind.__module__ == module.__name__
        and not kind.__name__.startswith(("_", "Bad"))
    ]


def _caught(package: str) -> set[str]:
    """The names of the exceptions the package catches itself."""
    return {
        name.id
        for module in all_modules(package)
        for handler in ast.walk(ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")))
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
        for name in ast.walk(handler.type)
        if isinstance(name, ast.Name)
    }
