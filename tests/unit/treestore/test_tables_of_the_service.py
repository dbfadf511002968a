"""The tables that say who may call what, and how a refusal looks, are complete."""

import importlib
import inspect
import pkgutil

import pytest
from lintello.common.v1 import reason_pb2
from lintello.treestore.v1 import treestore_pb2 as pb

from services import treestore
from services.treestore.errors import ERRORS
from services.treestore.servicer import ACCESS, Servicer


def exceptions() -> set[type[Exception]]:
    found: set[type[Exception]] = set()
    for module in pkgutil.iter_modules(treestore.__path__, "services.treestore."):
        if module.name.endswith((".__main__", ".migrations")):
            continue
        for _, member in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if issubclass(member, Exception) and member.__module__.startswith("services.treestore."):
                found.add(member)
    return found


def test_every_exception_of_the_service_has_a_row() -> None:
    assert exceptions() == set(ERRORS)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_reason_is_on_the_wire(error: type[Exception]) -> None:
    assert reason_pb2.Reason.Value(f"REASON_{ERRORS[error].reason}") > 0


def test_every_rpc_has_an_access() -> None:
    service = pb.DESCRIPTOR.services_by_name["TreeStoreService"]
    assert {f"/{service.full_name}/{method.name}" for method in service.methods} == set(ACCESS)


def test_every_rpc_is_answered() -> None:
    service = pb.DESCRIPTOR.services_by_name["TreeStoreService"]
    assert {method.name for method in service.methods} <= set(vars(Servicer))
