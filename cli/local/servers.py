"""The servers a stack stands on, where the environment names no others."""

from cli.local.folder import DataFolder
from cli.local.keys import Keys
from cli.local.output import OnLine
from cli.local.postgres import EmbeddedPostgres
from cli.local.process import ChildProcess, OnEvent
from cli.local.tasks import together
from cli.local.valkey import EmbeddedValkey


class Servers:
    """An embedded PostgreSQL and an embedded Valkey, each once it was started."""

    def __init__(self, *, on_line: OnLine, on_event: OnEvent) -> None:
        self._on_line = on_line
        self._on_event = on_event
        self._postgres: EmbeddedPostgres | None = None
        self._valkey: EmbeddedValkey | None = None

    @property
    def database_url(self) -> str:
        """The embedded PostgreSQL's URL; empty when there is none."""
        return "" if self._postgres is None else self._postgres.url

    @property
    def redis_url(self) -> str:
        """The embedded Valkey's URL; empty when there is none."""
        return "" if self._valkey is None else self._valkey.url

    @property
    def children(self) -> dict[str, ChildProcess]:
        """Their processes, by name."""
        named = {"postgres": self._postgres, "valkey": self._valkey}
        return {name: server.child for name, server in named.items() if server is not None and server.child is not None}

    async def start_postgres(self, folder: DataFolder, keys: Keys) -> None:
        """Return when it takes connections. Raises what EmbeddedPostgres does."""
        self._on_event("starting", "postgres", "")
        self._postgres = EmbeddedPostgres(folder, keys, on_line=self._on_line, on_event=self._on_event)
        await self._postgres.start()
        self._on_event("healthy", "postgres", "")

    async def start_valkey(self, folder: DataFolder) -> None:
        """Return when it answers. Raises what EmbeddedValkey does."""
        self._on_event("starting", "valkey", "")
        self._valkey = EmbeddedValkey(folder, on_line=self._on_line, on_event=self._on_event)
        await self._valkey.start()
        self._on_event("healthy", "valkey", "")

    async def stop(self, grace: float) -> None:
        """Stop both; who still runs after `grace` seconds is killed."""
        await together(*(server.stop(grace) for server in (self._postgres, self._valkey) if server is not None))
