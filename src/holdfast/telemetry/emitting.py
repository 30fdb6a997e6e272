"""Spans and metrics for the records of a ledger."""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import Callable
from typing import Any

from holdfast.checks import check_flag
from holdfast.errors import InvalidTypeError
from holdfast.ledger import Ledger, Record
from holdfast.telemetry.names import METRICS, Metric
from holdfast.telemetry.translating import (
    attributes_of,
    contents_of,
    encodable,
    is_error,
    is_tool_call,
    measurements_of,
    name_of,
)

__all__ = ["Telemetry"]

logger = logging.getLogger(__name__)

_SCOPE = "holdfast"


def _version() -> str:
    try:
        return importlib.metadata.version(_SCOPE)
    except importlib.metadata.PackageNotFoundError:
        return ""


# Read from files, and so not when a manager is made, which may be in an event loop.
_VERSION = _version()
_IN_A_SECOND = 1_000_000_000


class Telemetry:
    """Emits a span and metrics for each record that is added to a ledger from now on, until `stop` is called.

    Queries and other texts are put on spans only with *include_content*. With *tool_spans* False the agent's own
    retrievals and searches have no spans, which is right where a framework traces all tools itself. Providers are the
    global ones unless given. Without `opentelemetry-api` nothing happens, and `active` is False. Whatever fails there
    stops nobody, and is logged once.
    """

    def __init__(
        self,
        *,
        conversation_id: str = "",
        include_content: bool = False,
        tool_spans: bool = True,
        tracer_provider: Any = None,
        meter_provider: Any = None,
    ) -> None:
        self.conversation_id = conversation_id
        check_flag("include_content", include_content)
        check_flag("tool_spans", tool_spans)
        self._include_content = include_content
        self._tool_spans = tool_spans
        self._failed = False
        self._unsubscribe: Callable[[], None] | None = None
        self._spans: _Spans | None = self._safely(_Spans, tracer_provider)
        self._metrics: _Metrics | None = self._safely(_Metrics, meter_provider)

    @classmethod
    def of(cls, ledger: Ledger, **options: Any) -> Telemetry:
        """Watch *ledger* from now on; *options* are those of the class."""
        telemetry = cls(**options)
        if telemetry._spans or telemetry._metrics:
            telemetry._unsubscribe = ledger.on("*", telemetry.emit)
        return telemetry

    @property
    def conversation_id(self) -> str:
        """What spans say from now on that they belong to; nothing if it is empty."""
        return self._conversation_id

    @conversation_id.setter
    def conversation_id(self, name: str) -> None:
        if not isinstance(name, str):
            raise InvalidTypeError(f"conversation_id must be text, got {type(name).__name__}")
        self._conversation_id = name

    @property
    def active(self) -> bool:
        """Whether a ledger is watched."""
        return self._unsubscribe is not None

    def stop(self) -> None:
        """Watch no longer."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        self._unsubscribe = None

    def emit(self, record: Record) -> None:
        """Emit one record."""
        if self._spans and (self._tool_spans or not is_tool_call(record)):
            self._safely(self._spans.emit, record, self._attributes(record))
        if self._metrics:
            self._safely(self._metrics.emit, record)

    def _attributes(self, record: Record) -> dict[str, Any]:
        said = contents_of(record) if self._include_content else {}
        common = {"gen_ai.conversation.id": encodable(self.conversation_id)} if self.conversation_id else {}
        return {**attributes_of(record), **said, **common}

    def _safely(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a part that leads to somebody else's code."""
        try:
            return function(*args)
        except ModuleNotFoundError as error:
            # Not installed, and not asked for.
            logger.debug("no telemetry: %s", error)
        except Exception:
            if not self._failed:
                logger.exception("telemetry failed; this is said once, and the agent goes on")
            self._failed = True
        return None


class _Spans:
    """Makes spans, in the current context, of what has happened already; what nobody timed is a moment."""

    def __init__(self, provider: Any) -> None:
        self._trace = importlib.import_module("opentelemetry.trace")
        self._tracer = self._trace.get_tracer(_SCOPE, _VERSION, tracer_provider=provider)

    def emit(self, record: Record, attributes: dict[str, Any]) -> None:
        start = max(int((record.at - (record.seconds or 0)) * _IN_A_SECOND), 0)
        kind = self._trace.SpanKind.INTERNAL
        span = self._tracer.start_span(name_of(record), kind=kind, attributes=attributes, start_time=start)
        if is_error(record):
            span.set_status(self._trace.StatusCode.ERROR, attributes.get("holdfast.error"))
        span.end(end_time=int(record.at * _IN_A_SECOND))


class _Metrics:
    """Feeds one instrument for each metric."""

    def __init__(self, provider: Any) -> None:
        meter = importlib.import_module("opentelemetry.metrics").get_meter(_SCOPE, _VERSION, meter_provider=provider)
        self._feeds = {name: _feed(meter, name, metric) for name, metric in METRICS.items()}

    def emit(self, record: Record) -> None:
        for metric, value, attributes in measurements_of(record):
            self._feeds[metric](value, attributes)


def _feed(meter: Any, name: str, metric: Metric) -> Callable[..., None]:
    if metric.buckets is None:
        counter = meter.create_counter(name, metric.unit, metric.meaning)
        return counter.add  # type: ignore[no-any-return]
    histogram = meter.create_histogram(
        name, metric.unit, metric.meaning, explicit_bucket_boundaries_advisory=metric.buckets
    )
    return histogram.record  # type: ignore[no-any-return]
