"""The data folder: where it is, what it holds, and that only one stack at a time uses it."""

import fcntl
import os
import pwd
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cli.local.errors import FolderInUse, FolderUnusable

ROOT_HOME = Path("/var/lib/lintello")
"""As root: the default data folder, the servers' binaries, and the databases of folders `nobody` can't enter."""


def choose_path(argument: Path | None, environment: Mapping[str, str]) -> Path:
    """The absolute data folder: the argument, else `LINTELLO_DATA_DIR`, else `.lintello` here (root: /var/lib)."""
    if argument is not None:
        return argument.expanduser().resolve()
    if named := environment.get("LINTELLO_DATA_DIR"):
        return Path(named).expanduser().resolve()
    return ROOT_HOME if os.geteuid() == 0 else Path.cwd() / ".lintello"


def server_user() -> str | None:
    """The user PostgreSQL runs as: `nobody` when we are root (PostgreSQL refuses root), else None, ourselves."""
    return "nobody" if os.geteuid() == 0 else None


def reachable_by_others(path: Path) -> bool:
    """Whether any user may pass through `path` and every folder above it."""
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))


@dataclass
class DataFolder:
    """One stack's folder. Its parts exist after `open_folder`; `acquire` takes it for this process alone."""

    path: Path
    _lock: int | None = field(default=None, repr=False)

    @property
    def keys(self) -> Path:
        """The secrets, 0700; back up what is in here."""
        return self.path / "keys"

    @property
    def logs(self) -> Path:
        """One log per process, 0700."""
        return self.path / "logs"

    @property
    def valkey(self) -> Path:
        """Valkey's append-only file and its socket, 0700."""
        return self.path / "valkey"

    @property
    def state(self) -> Path:
        """Describes the running stack."""
        return self.path / "state.json"

    @property
    def postgres(self) -> Path:
        """The database cluster; absent until it is whole. As root it may be a link to a place `nobody` can enter."""
        return self.path / "postgres"

    def acquire(self) -> None:
        """Take the folder for this process until `release` or its death. Raises FolderInUse, FolderUnusable."""
        try:
            lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FolderUnusable(self.path, error.strerror or type(error).__name__) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise FolderInUse(self.path) from None
        self._lock = lock

    def release(self) -> None:
        """Give the folder back; nothing happens when it isn't held."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def database_home(self) -> Path:
        """The real folder the database cluster belongs in, its parent created and enterable by the server's user.

        A folder under a closed home can't be entered by `nobody`: then the cluster is under /var/lib/lintello, in a
        place only the link knows, so that a folder deleted and made anew never meets an old database.
        """
        if server_user() is None or reachable_by_others(self.path):
            return self.postgres
        if not self.postgres.is_symlink():
            home = ROOT_HOME / "databases" / secrets.token_hex(8)
            for folder in (ROOT_HOME, home.parent, home):
                _make(folder, 0o711)
            self.postgres.symlink_to(home / "postgres")
        return self.postgres.readlink()


def open_folder(path: Path) -> DataFolder:
    """Create what is missing of the data folder, with its modes. Raises FolderUnusable."""
    folder = DataFolder(path)
    try:
        _make(path, 0o700 if server_user() is None else 0o711)
        for part in (folder.keys, folder.logs, folder.valkey):
            _make(part, 0o700)
    except OSError as error:
        raise FolderUnusable(path, error.strerror or type(error).__name__) from error
    return folder


def give_to_server_user(path: Path) -> None:
    """Hand a file or folder to the user PostgreSQL runs as; nothing to do when that is us."""
    if name := server_user():
        user = pwd.getpwnam(name)
        os.chown(path, user.pw_uid, user.pw_gid)


def _make(path: Path, mode: int) -> None:
    """Create a folder with exactly this mode; one that is there already keeps the mode its owner gave it."""
    if path.is_dir():
        return
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(mode)
