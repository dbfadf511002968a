"""Errors: from a named exception to google.rpc.Status."""

import grpc
import pytest
from google.rpc import error_details_pb2

from kit.errors import ErrorTable, InvalidField, Refusal, RemoteError, ShuttingDown, TooLarge, refusal_for, to_status

BAD_REQUEST = Refusal(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
BUSY = Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "BUSY", "too much at once")


class Busy(Exception):
    """A domain's exception."""


class VeryBusy(Busy):
    """A narrower one."""


TABLE: ErrorTable = {Busy: BUSY}


def test_an_exception_has_its_own_row() -> None:
    assert refusal_for(Busy(), TABLE) is BUSY


def test_an_exception_without_a_row_has_that_of_the_nearest_class() -> None:
    assert refusal_for(VeryBusy(), TABLE) is BUSY


def test_an_exception_nobody_named_has_no_row() -> None:
    assert refusal_for(KeyError("x"), TABLE) is None


@pytest.mark.parametrize("error", [InvalidField("a", "b"), TooLarge("a", "b"), ShuttingDown()])
def test_the_kit_s_own_exceptions_are_in_every_table(error: Exception) -> None:
    assert refusal_for(error, {}) is not None


def test_a_table_may_overrule_the_kit() -> None:
    assert refusal_for(ShuttingDown(), {ShuttingDown: BUSY}) is BUSY


def test_a_bad_field_is_named_in_the_details() -> None:
    status = to_status(InvalidField("title", "is too long"), BAD_REQUEST)
    details = error_details_pb2.BadRequest()
    assert status.details[1].Unpack(details)
    assert [(v.field, v.description) for v in details.field_violations] == [("title", "is too long")]


def test_a_row_s_message_is_said_instead_of_the_exception_s() -> None:
    assert to_status(Busy("private"), BUSY).message == "too much at once"


def test_the_reason_is_in_our_domain() -> None:
    info = error_details_pb2.ErrorInfo()
    assert to_status(Busy(), BUSY).details[0].Unpack(info)
    assert (info.reason, info.domain) == ("BUSY", "lintello")


def test_what_a_remote_error_says_of_itself_holds_no_message() -> None:
    error = RemoteError(grpc.StatusCode.NOT_FOUND, "NOT_FOUND", "a person's words")
    assert str(error) == "NOT_FOUND NOT_FOUND"
