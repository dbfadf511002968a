"""What treestore refuses, and how the outside sees it."""

import grpc

from kit.errors import ErrorTable, Refusal
from services.treestore.tree import TreeFull, TreeInvalid


class NotFound(Exception):
    """There is no such thing, or it belongs to somebody else: one text for both."""

    def __init__(self) -> None:
        super().__init__("there is no such thing")


class IdTaken(Exception):
    """An id given for something new stands for something else already, or once stood for something deleted."""

    def __init__(self, field: str) -> None:
        super().__init__(f"{field}: this id is taken")


class RunInProgress(Exception):
    """The conversation has another run that is going on."""

    def __init__(self) -> None:
        super().__init__("this conversation has a run that is going on")


class RunClosed(Exception):
    """The run has ended; nothing more is written in its name."""

    def __init__(self) -> None:
        super().__init__("this run has ended")


class IdempotencyKeyReused(Exception):
    """This idempotency key came with another request before."""

    def __init__(self) -> None:
        super().__init__("this idempotency key came with another request before")


class DataLoss(Exception):
    """A stored value doesn't open. Names its place, never what it might hold."""

    def __init__(self, table: str, column: str, row: str) -> None:
        super().__init__(f"a stored value doesn't open: {table}.{column} of {row}")
        self.metadata = {"table": table, "column": column, "row": row}


class StoreAway(Exception):
    """PostgreSQL doesn't answer."""


ERRORS: ErrorTable = {
    NotFound: Refusal(grpc.StatusCode.NOT_FOUND, "NOT_FOUND"),
    IdTaken: Refusal(grpc.StatusCode.ALREADY_EXISTS, "ID_TAKEN"),
    RunInProgress: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "RUN_IN_PROGRESS"),
    RunClosed: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "RUN_CLOSED"),
    IdempotencyKeyReused: Refusal(grpc.StatusCode.ALREADY_EXISTS, "IDEMPOTENCY_KEY_REUSED"),
    TreeInvalid: Refusal(grpc.StatusCode.INVALID_ARGUMENT, "TREE_INVALID"),
    TreeFull: Refusal(grpc.StatusCode.FAILED_PRECONDITION, "TREE_FULL"),
    DataLoss: Refusal(grpc.StatusCode.DATA_LOSS, "DATA_LOSS"),
    StoreAway: Refusal(grpc.StatusCode.UNAVAILABLE, "UNAVAILABLE", "the database doesn't answer; try again"),
}
