"""The environment each process of a stack gets: what it needs, and no secret that it doesn't."""

from collections.abc import Mapping
from dataclasses import dataclass

from cli.local.errors import BadMetricsPort
from cli.local.keys import Keys, public_key
from cli.local.ports import LOOPBACK

PREFIX = "LINTELLO_"

READERS: Mapping[str, frozenset[str]] = {
    "ENCRYPTION_KEYS": frozenset({"treestore"}),
    "INTERNAL_KEY": frozenset({"gateway", "engine"}),
    "JWT_SECRET": frozenset({"gateway"}),
    "SITE_KEYS": frozenset({"gateway"}),
    "LLM_API_KEY": frozenset({"engine"}),
    "EMBEDDINGS_API_KEY": frozenset(),
    "DATABASE_URL": frozenset({"migrate", "treestore", "quota"}),
    "REDIS_URL": frozenset({"quota", "engine"}),
}
"""Settings that are secrets, or hold one, and who may read them; every other process does without."""


@dataclass(frozen=True)
class Places:
    """Where the parts of one stack are."""

    data_folder: str
    database_url: str
    redis_url: str
    addresses: Mapping[str, str]
    """gRPC `host:port`, or `host:port,host:port` of several processes, by service."""
    trial_url: str | None
    """Base URL of the trial model, when that is the model."""


def is_set(environment: Mapping[str, str], name: str) -> bool:
    """Whether the setting has a value that isn't empty."""
    return bool(environment.get(PREFIX + name))


def wants_trial_model(environment: Mapping[str, str]) -> bool:
    """Whether no model was configured, so that the trial model serves."""
    return not any(is_set(environment, name) for name in ("LLM_BASE_URL", "LLM_API_KEY"))


def metrics_port(environment: Mapping[str, str]) -> int | None:
    """The first port of metrics; None when there are to be none. Raises BadMetricsPort."""
    if not is_set(environment, "METRICS_PORT"):
        return None
    given = environment[f"{PREFIX}METRICS_PORT"].strip()
    if not (given.isascii() and given.isdecimal() and len(given) <= 5 and 1 <= int(given) <= 65535):
        raise BadMetricsPort
    return int(given)


def child_environment(
    name: str, parent: Mapping[str, str], keys: Keys, places: Places, own: Mapping[str, str]
) -> dict[str, str]:
    """The environment of a process of the service `name`; `own` holds the settings that are this process's alone.

    What the user set wins over what the stack makes for itself.
    """
    made = {
        "DATABASE_URL": places.database_url,
        "REDIS_URL": places.redis_url,
        "ENCRYPTION_KEYS": keys.encryption_keys,
        "INTERNAL_PUBLIC_KEYS": _public_keys(parent, keys),
        "AUTH_MODE": "dev",
        # The gateways are told to end after the engines: what they still have to say by then is said in a second.
        "DRAIN_SECONDS": "1" if name == "gateway" else "5",
        "GATEWAY_HOST": LOOPBACK,
    }
    if name in keys.internal_keys:
        made["INTERNAL_KEY"] = keys.internal_keys[name]
    if parent.get(f"{PREFIX}AUTH_MODE", "dev") == "dev":
        # In the other mode a forgotten secret must stop the start, not be replaced by one nobody knows.
        made["JWT_SECRET"] = keys.jwt_secret
    # Decided by the stack itself, whatever the parent has: these are where it put things.
    placed = {
        "DATA_DIR": places.data_folder,
        **{f"{service.upper()}_ADDRESS": address for service, address in places.addresses.items()},
        **own,
    }
    if places.trial_url is not None:
        placed |= {"LLM_BASE_URL": places.trial_url, "TRIAL_MODEL": "1"}
    kept = {PREFIX + key: value for key, value in made.items() if not is_set(parent, key)}
    environment = {**parent, **kept, **{PREFIX + key: value for key, value in placed.items()}}
    # Lines reach the logs when they are written, not when a buffer is full.
    environment["PYTHONUNBUFFERED"] = "1"
    for secret, readers in READERS.items():
        if name not in readers:
            environment.pop(PREFIX + secret, None)
    if "METRICS_PORT" not in own:
        # Two processes can't listen at one port.
        environment.pop(f"{PREFIX}METRICS_PORT", None)
    return environment


def _public_keys(parent: Mapping[str, str], keys: Keys) -> str:
    if not is_set(parent, "INTERNAL_KEY"):
        return keys.internal_public_keys
    # The user's one key signs for both gateway and engine; its public half comes first.
    return f"{public_key(parent[f'{PREFIX}INTERNAL_KEY'])},{keys.internal_public_keys}"
