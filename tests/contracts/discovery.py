"""What there is to hold to a contract, found in the folders, so that a new service is held to it by being there."""

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
SERVICES = sorted(path.parent.name for path in (ROOT / "services").glob("*/servicer.py"))


def service_module(service: str, name: str) -> ModuleType:
    """One of the files every service has."""
    return importlib.import_module(f"services.{service}.{name}")


def all_modules(package: str) -> list[ModuleType]:
    """Every module of a package, but for the entry of its process and its migrations, which run when imported."""
    top = importlib.import_module(package)
    names = [found.name for found in pkgutil.walk_packages(top.__path__, f"{package}.")]
    return [
        importlib.import_module(name) for name in names if not name.endswith(".__main__") and ".migrations" not in name
    ]


def wire_modules(service: str) -> list[ModuleType]:
    """The generated modules of a service's protos."""
    folder = ROOT / "protos" / "lintello" / service
    return [
        importlib.import_module(".".join(path.relative_to(ROOT / "protos").with_suffix("").parts) + "_pb2")
        for path in sorted(folder.rglob("*.proto"))
    ]
