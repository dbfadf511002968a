"""The one way a command ends without success."""

DONE = 0
FAILED = 1
WRONG_USAGE = 2


class Failure(Exception):
    """A command can't go on: its text is one line for the user, `exit_code` is 1 (failed) or 2 (wrong usage)."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code
