"""Telemetry: structured logs and traces that follow one request through every process.

Logs carry ids, types and frames, never the text of an exception, which may quote a person's words.
Trace context travels as W3C traceparent.
"""

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import orjson
import structlog
from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind

log = structlog.get_logger()


def configure(service: str) -> None:
    """Send logs to standard error as one JSON object a line, and name this process in its traces."""
    # Nobody takes spans yet, so none is recorded; their ids still go from process to process and into every log line.
    trace.set_tracer_provider(TracerProvider(ALWAYS_OFF, Resource.create({"service.name": service})))
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Wordless())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    sys.excepthook = _crashed
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _add_trace,
            _add(service),
            structlog.processors.JSONRenderer(serializer=lambda event, **_: orjson.dumps(event, default=str).decode()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def frames(error: BaseException) -> list[str]:
    """Where an exception came from, innermost last: file, line and function, and not a word of its text."""
    found = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in found]


def fault(event: str, error: BaseException, **fields: object) -> None:
    """Log a fault by its type and frames."""
    log.error(event, error_type=type(error).__qualname__, frames=frames(error), **fields)


class Reach:
    """Whether a server is within reach: told once when it goes away, and once when it is back."""

    def __init__(self, name: str) -> None:
        """`name` is the server's, for the events `<name>_away` and `<name>_back`."""
        self._name = name
        self._away = False

    def lost(self, error: BaseException) -> None:
        """It didn't answer."""
        if not self._away:
            fault(f"{self._name}_away", error)
        self._away = True

    def found(self) -> None:
        """It answered."""
        if self._away:
            log.info(f"{self._name}_back")
        self._away = False


@contextmanager
def span(
    name: str, kind: SpanKind = SpanKind.INTERNAL, carrier: Mapping[str, str] | None = None
) -> Iterator[trace.Span]:
    """A span, under the one whose traceparent `carrier` holds, else under the current one.

    An exception marks it by type only.
    """
    tracer = trace.get_tracer("kit")
    parent = extract(carrier) if carrier is not None else None
    with tracer.start_as_current_span(
        name, parent, kind, record_exception=False, set_status_on_exception=False
    ) as opened:
        try:
            yield opened
        except BaseException as error:
            opened.set_attribute("error.type", type(error).__qualname__)
            raise


def propagate(metadata: dict[str, str]) -> dict[str, str]:
    """Add the current trace to the metadata of an outgoing call."""
    inject(metadata)
    return metadata


class _Wordless(logging.Formatter):
    """A library's record by its logger, level and place: its message and its exception's text may quote content."""

    def format(self, record: logging.LogRecord) -> str:
        event: dict[str, object] = {
            "event": "library",
            "logger": record.name,
            "level": record.levelname.lower(),
            "place": f"{record.pathname}:{record.lineno} {record.funcName}",
        }
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            event |= {"error_type": type(error).__qualname__, "frames": frames(error)}
        return orjson.dumps(event).decode()


def _crashed(kind: type[BaseException], error: BaseException, trace_back: TracebackType | None) -> None:
    """What ends the process is told like any other fault."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace_back)
    else:
        fault("crashed", error)


def _add_trace(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = f"{context.trace_id:032x}"
    return event


def _add(service: str) -> structlog.typing.Processor:
    def add(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["service"] = service
        return event

    return add
