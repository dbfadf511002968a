"""What `doctor` looks at: one function per matter, each giving findings and raising nothing."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from cli.commands.settings import setting
from cli.commands.stack_events import part
from cli.local.folder import DataFolder
from cli.local.health import grpc_serving, http_ready
from cli.local.keys import encryption_file
from cli.local.state import State
from cli.texts import say
from kit.settings import BadSetting, check_names

Verdict = Literal["ok", "info", "warning", "failed"]
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """One line of the report. `failed` means that something needed doesn't work."""

    matter: str
    state: Verdict
    detail: str


def check_python() -> Finding:
    """Whether this Python is one we run on."""
    version = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < OLDEST_PYTHON
    return Finding(
        say("doctor.python"), "failed" if old else "ok", say(f"doctor.python_{'old' if old else 'ok'}", version=version)
    )


def check_names_known(environment: Mapping[str, str]) -> Finding:
    """Whether every name under our prefix is one that somebody reads."""
    try:
        check_names(environment)
    except BadSetting as error:
        return Finding(say("doctor.settings"), "failed", str(error))
    return Finding(say("doctor.settings"), "ok", say("doctor.settings_ok"))


def check_folder(folder: DataFolder) -> Finding:
    """Whether the data folder can be used, or made."""
    matter, path = say("doctor.folder"), folder.path
    if path.is_dir() and os.access(path, os.W_OK | os.X_OK):
        return Finding(matter, "ok", say("doctor.folder_ok", path=path))
    above = next(parent for parent in path.parents if parent.exists())
    if not path.exists() and above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Finding(matter, "info", say("doctor.folder_new", path=path))
    return Finding(matter, "failed", say("doctor.folder_closed", path=path))


def check_keys(folder: DataFolder) -> Finding:
    """Where the key is whose loss makes everything unreadable."""
    matter, path = say("doctor.keys"), encryption_file(folder)
    if setting("ENCRYPTION_KEYS"):
        return Finding(matter, "ok", say("doctor.keys_given"))
    if path.exists():
        return Finding(matter, "ok", say("doctor.keys_file", path=path))
    if folder.postgres.exists():
        return Finding(matter, "failed", say("doctor.keys_gone", path=path))
    return Finding(matter, "info", say("doctor.keys_new"))


def check_auth() -> Finding:
    """How callers are known."""
    matter, mode = say("doctor.auth"), setting("AUTH_MODE") or "dev"
    if mode == "dev":
        return Finding(matter, "ok", say("doctor.auth_dev"))
    if mode != "jwt":
        return Finding(matter, "failed", say("doctor.auth_bad"))
    for name in ("JWT_SECRET", "JWT_JWKS_URL"):
        if setting(name):
            return Finding(matter, "ok", say("doctor.auth_jwt", name=f"LINTELLO_{name}"))
    return Finding(matter, "failed", say("doctor.auth_jwt_missing"))


async def check_services(state: State | None) -> list[Finding]:
    """The running stack and the health of each of its services."""
    if state is None:
        return [Finding(say("doctor.stack"), "info", say("doctor.stack_none"))]
    findings = [Finding(say("doctor.stack"), "ok", say("doctor.stack_up", url=state.urls[0]))]
    for name, url in state.gateways.items():
        findings.append(_service(name, url.removeprefix("http://"), await http_ready(_port(url))))
    for name, address in state.addresses.items():
        findings.append(_service(name, address, await grpc_serving(_port(address))))
    return findings


def _service(name: str, address: str, healthy: bool) -> Finding:
    text = say(f"doctor.service_{'ok' if healthy else 'down'}", address=address)
    return Finding(part(name), "ok" if healthy else "failed", text)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
