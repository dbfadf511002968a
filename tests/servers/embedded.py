"""Embedded PostgreSQL and Valkey in a folder of their own, which is gone afterwards."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from cli.local.folder import DataFolder, open_folder
from cli.local.keys import create_missing_keys, read_keys
from cli.local.postgres import EmbeddedPostgres
from cli.local.valkey import EmbeddedValkey


@asynccontextmanager
async def embedded_postgres() -> AsyncIterator[EmbeddedPostgres]:
    """A running PostgreSQL; a server that dies is started again after 0.2 s."""
    with _folder() as folder:
        create_missing_keys(folder)
        server = EmbeddedPostgres(folder, read_keys(folder), on_line=_ignore, on_event=_ignore)
        try:
            await server.start()
            yield server
        finally:
            await server.stop()
            if folder.postgres.is_symlink():
                # As root the cluster is where the server's own user can enter, in a folder made for it alone.
                shutil.rmtree(folder.database_home().parent)


@asynccontextmanager
async def embedded_valkey() -> AsyncIterator[EmbeddedValkey]:
    """A running Valkey; a server that dies is started again after 0.2 s, one that was stopped isn't."""
    with _folder() as folder:
        server = EmbeddedValkey(folder, on_line=_ignore, on_event=_ignore)
        try:
            await server.start()
            yield server
        finally:
            await server.stop()


@contextmanager
def _folder() -> Iterator[DataFolder]:
    with tempfile.TemporaryDirectory(prefix="lintello-test-") as path:
        folder = open_folder(Path(path))
        folder.acquire()
        try:
            yield folder
        finally:
            folder.release()


def _ignore(*_: str) -> None:
    """The server's log has it."""
