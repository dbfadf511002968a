"""Telemetry: logs and traces hold ids, types and frames, and no content."""

import subprocess
import sys

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from kit import telemetry

WORDS = "a person's own words"
PROGRAM = f"""
import logging
from kit import telemetry
telemetry.configure("example")
def fail():
    raise ValueError({WORDS!r})
with telemetry.span("outer"):
    try:
        fail()
    except ValueError as error:
        telemetry.fault("call_failed", error, method="M")
logging.getLogger("library").warning("it said %s", {WORDS!r})
try:
    fail()
except ValueError:
    logging.getLogger("library").exception({WORDS!r})
fail()
"""


@pytest.fixture(scope="module")
def written() -> list[str]:
    """The lines of a process that logs a fault of its own and two of a library's, and then crashes."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 1)
    return done.stderr.splitlines()


def test_every_line_of_the_log_is_one_json_object(written: list[str]) -> None:
    assert len(written) == 4
    assert all(isinstance(orjson.loads(line), dict) for line in written)


def test_a_fault_is_told_by_type_and_frames_without_its_text(written: list[str]) -> None:
    event = orjson.loads(written[0])
    assert (event["event"], event["error_type"], event["method"]) == ("call_failed", "ValueError", "M")
    assert event["frames"][-1].endswith("fail")
    assert (event["service"], event["level"]) == ("example", "error")
    assert len(event["trace_id"]) == 32


def test_a_library_s_record_is_told_by_its_logger_and_the_type_of_its_exception(written: list[str]) -> None:
    plain, with_error = (orjson.loads(line) for line in written[1:3])
    assert (plain["logger"], plain["level"], plain.get("error_type")) == ("library", "warning", None)
    assert with_error["error_type"] == "ValueError"


def test_what_ends_the_process_is_told_by_its_type(written: list[str]) -> None:
    event = orjson.loads(written[3])
    assert (event["event"], event["error_type"]) == ("crashed", "ValueError")


def test_no_line_of_the_log_holds_an_exception_s_text(written: list[str]) -> None:
    assert WORDS not in "\n".join(written)


def test_a_span_that_fails_is_marked_by_the_type_only(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    with pytest.raises(ValueError), telemetry.span("think", SpanKind.INTERNAL):
        raise ValueError(WORDS)
    (span,) = exporter.get_finished_spans()
    assert dict(span.attributes or {}) == {"error.type": "ValueError"}
    assert WORDS not in span.to_json()


def test_a_trace_goes_on_on_the_other_side(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = TracerProvider()
    monkeypatch.setattr(trace, "get_tracer", lambda name: provider.get_tracer(name))
    with telemetry.span("caller") as caller:
        metadata = telemetry.propagate({})
    with telemetry.span("callee", SpanKind.SERVER, metadata) as callee:
        assert callee.get_span_context().trace_id == caller.get_span_context().trace_id
