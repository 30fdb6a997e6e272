"""Records as spans and metrics, in the real SDK; and nothing at all without OpenTelemetry."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from holdfast.errors import InvalidTypeError
from holdfast.ledger import KINDS, Ledger
from holdfast.telemetry import ATTRIBUTES, METRICS, Telemetry

SECRET = "the secret word"
WHEN = 1_763_290_000.0
PAGE = Path(__file__).parent.parent / "docs" / "ledger.md"


class Backend:
    """The real SDK with exporters that keep everything in memory."""

    def __init__(self) -> None:
        reason = "needs opentelemetry-sdk, which the extras dev and core-test bring"
        trace = pytest.importorskip("opentelemetry.sdk.trace", reason=reason)
        export = pytest.importorskip("opentelemetry.sdk.trace.export")
        memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
        metrics = pytest.importorskip("opentelemetry.sdk.metrics")
        reading = pytest.importorskip("opentelemetry.sdk.metrics.export")
        self._exporter, self._reader = memory.InMemorySpanExporter(), reading.InMemoryMetricReader()
        self.tracer_provider = trace.TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(export.SimpleSpanProcessor(self._exporter))
        self.meter_provider = metrics.MeterProvider([self._reader], shutdown_on_exit=False)

    def watch(self, ledger: Ledger, **options) -> Telemetry:
        given = {"tracer_provider": self.tracer_provider, "meter_provider": self.meter_provider}
        return Telemetry.of(ledger, **given | options)

    @property
    def spans(self):
        return self._exporter.get_finished_spans()

    @property
    def metrics(self) -> dict[str, list]:
        """The data points of each metric."""
        data = self._reader.get_metrics_data()
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        return {metric.name: list(metric.data.data_points) for scope in scopes for metric in scope.metrics}


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(clock=lambda: WHEN)


def fill(ledger: Ledger) -> None:
    """Add one of each kind, with a secret in every text."""
    said = {"what": SECRET, "why": SECRET, "references": ["mem/1"], "seconds": 0.25}
    nowhere = {**said, "references": [SECRET]}
    ledger.add("reduction", messages=41, rewritten=2, tokens_before=9_000, tokens_after=4_000, **said)
    ledger.add("offload", tool="read_file", call_id="call_7", tokens_before=900, tokens_after=100, **said)
    ledger.add("retrieval", tool="retrieve_offloaded_content", found=False, **nowhere)
    ledger.add("search", query=SECRET, **said)
    ledger.add("eviction", **said)
    ledger.add("failure", error=OSError(SECRET), **said)
    ledger.add("undo", undone=1, tokens_before=4_000, tokens_after=9_000, **said)


def test_each_record_is_a_span_that_ends_when_it_was_written(backend, ledger):
    backend.watch(ledger)
    fill(ledger)
    assert [span.name for span in backend.spans] == [
        "holdfast.reduction",
        "holdfast.offload",
        "execute_tool retrieve_offloaded_content",
        "execute_tool search_context",
        "holdfast.eviction",
        "holdfast.failure",
        "holdfast.undo",
    ]
    assert {(span.start_time, span.end_time) for span in backend.spans} == {
        (int((WHEN - 0.25) * 1e9), int(WHEN * 1e9)),
    }


def test_what_nobody_timed_is_a_moment_and_feeds_no_durations(backend, ledger):
    backend.watch(ledger)
    ledger.add("eviction")
    ledger.add("search", query="x", seconds=0.0)
    span = backend.spans[0]
    assert span.start_time == span.end_time == int(WHEN * 1e9)
    (point,) = backend.metrics["holdfast.duration"]
    assert (point.count, dict(point.attributes)) == (1, {"holdfast.record.kind": "search"})


def test_a_span_belongs_to_what_is_going_on(backend, ledger):
    backend.watch(ledger)
    with backend.tracer_provider.get_tracer("agent").start_as_current_span("invoke_agent") as parent:
        ledger.add("eviction")
    child = next(span for span in backend.spans if span.name == "holdfast.eviction")
    assert child.parent.span_id == parent.get_span_context().span_id


def test_the_agents_own_tools_are_named_as_the_conventions_name_tools(backend, ledger):
    backend.watch(ledger, conversation_id="conv_7")
    ledger.add("search", query="x")
    (span,) = backend.spans
    assert span.kind.name == "INTERNAL"
    assert dict(span.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search_context",
        "gen_ai.tool.type": "datastore",
        "gen_ai.conversation.id": "conv_7",
        "holdfast.record.kind": "search",
        "holdfast.record.number": 1,
        "holdfast.turn": 0,
    }


def test_a_search_of_the_program_is_no_tool_call_and_no_search_of_the_agent(backend, ledger):
    backend.watch(ledger, tool_spans=False, include_content=True)
    ledger.add("search", query="x", tool="")
    (span,) = backend.spans
    assert span.name == "holdfast.search"
    assert not any(name.startswith("gen_ai.tool") or name == "gen_ai.operation.name" for name in span.attributes)
    assert "holdfast.searches" not in backend.metrics


def test_an_offload_names_the_call_whose_result_left(backend, ledger):
    backend.watch(ledger)
    ledger.add("offload", tool="read_file", call_id="call_7")
    ledger.add("offload", tool="read_file")
    assert [span.attributes.get("gen_ai.tool.call.id") for span in backend.spans] == ["call_7", None]


def test_a_retrieval_that_found_nothing_is_an_error(backend, ledger):
    backend.watch(ledger)
    ledger.add("retrieval", found=False)
    ledger.add("retrieval", found=True)
    assert [span.attributes.get("error.type") for span in backend.spans] == ["not_found", None]
    assert [span.status.status_code.name for span in backend.spans] == ["ERROR", "UNSET"]


def test_spans_say_which_version_made_them(backend, ledger):
    backend.watch(ledger)
    ledger.add("eviction")
    scope = backend.spans[0].instrumentation_scope
    assert (scope.name, scope.version) == ("holdfast", version("holdfast"))


def test_tools_that_a_framework_traces_get_no_second_span(backend, ledger):
    backend.watch(ledger, tool_spans=False)
    fill(ledger)
    assert len(backend.spans) == 5
    assert len(backend.metrics["holdfast.searches"]) == 1


def test_a_failure_is_an_error_with_the_class_of_it(backend, ledger):
    backend.watch(ledger)
    ledger.add("failure", error=OSError("disk full"))
    ledger.add("failure", error="nobody knows")
    first, second = backend.spans
    assert (first.status.status_code.name, first.status.description) == ("ERROR", None)
    assert (first.attributes["error.type"], second.attributes["error.type"]) == ("OSError", "_OTHER")


def test_no_content_is_told_unless_it_is_asked_for(backend, ledger):
    backend.watch(ledger)
    fill(ledger)
    told = [(span.name, dict(span.attributes), span.status.description) for span in backend.spans]
    assert SECRET not in str(told)
    assert SECRET not in str(backend.metrics)


def test_content_is_told_where_it_is_asked_for(backend, ledger):
    backend.watch(ledger, include_content=True)
    fill(ledger)
    search = next(span for span in backend.spans if span.name.endswith("search_context"))
    assert json.loads(search.attributes["gen_ai.tool.call.arguments"]) == {"query": SECRET}
    assert all(span.attributes["holdfast.what"] == SECRET for span in backend.spans)
    assert SECRET not in str(backend.metrics)


def test_a_reference_that_led_nowhere_is_the_models_text(backend, ledger):
    backend.watch(ledger)
    ledger.add("retrieval", found=False, references=[SECRET])
    ledger.add("retrieval", found=True, references=["mem/1"])
    nowhere, somewhere = (span.attributes for span in backend.spans)
    assert "holdfast.references" not in nowhere
    assert nowhere["holdfast.references.count"] == 1
    assert somewhere["holdfast.references"] == ("mem/1",)


def test_a_reference_that_led_nowhere_is_told_where_content_is_asked_for(backend, ledger):
    backend.watch(ledger, include_content=True)
    ledger.add("retrieval", found=False, references=[f"{SECRET}\ud800"])
    assert backend.spans[0].attributes["holdfast.references"] == (f"{SECRET}?",)


def test_the_conversation_may_be_named_later(backend, ledger):
    telemetry = backend.watch(ledger, conversation_id="conv_7")
    assert telemetry.conversation_id == "conv_7"
    ledger.add("eviction")
    telemetry.conversation_id = "conv_8\ud800"
    ledger.add("eviction")
    telemetry.conversation_id = ""
    ledger.add("eviction")
    named = [span.attributes.get("gen_ai.conversation.id") for span in backend.spans]
    assert named == ["conv_7", "conv_8?", None]
    with pytest.raises(InvalidTypeError, match="conversation_id must be text, got NoneType"):
        telemetry.conversation_id = None
    assert telemetry.conversation_id == ""


def test_an_undo_of_an_unknown_record_says_no_number(backend, ledger):
    backend.watch(ledger)
    ledger.add("undo", undone=None)
    assert "holdfast.undone" not in backend.spans[0].attributes


def values(points) -> dict[tuple, float]:
    return {tuple(sorted(point.attributes.items())): getattr(point, "value", None) or point.sum for point in points}


def test_metrics_count_what_happens(backend, ledger):
    backend.watch(ledger)
    fill(ledger)
    fill(ledger)
    metrics = backend.metrics
    assert values(metrics["holdfast.reductions"]) == {(): 2}
    assert values(metrics["holdfast.offloads"]) == {(): 2}
    assert values(metrics["holdfast.retrievals"]) == {(("error.type", "not_found"), ("holdfast.found", False)): 2}
    assert values(metrics["holdfast.failures"]) == {(("error.type", "OSError"),): 2}
    assert values(metrics["holdfast.context.tokens_removed"]) == {
        (("holdfast.record.kind", "reduction"),): 10_000,
        (("holdfast.record.kind", "offload"),): 1_600,
    }
    assert values(metrics["holdfast.context.tokens_returned"]) == {(("holdfast.record.kind", "undo"),): 10_000}


def test_the_context_is_measured_before_and_after(backend, ledger):
    backend.watch(ledger)
    ledger.add("reduction", tokens_before=9_000, tokens_after=4_000)
    points = backend.metrics["holdfast.context.tokens"]
    assert {point.attributes["holdfast.context.moment"]: point.sum for point in points} == {
        "before": 9_000,
        "after": 4_000,
    }
    assert max(points[0].explicit_bounds) > 10_000_000


def test_every_name_is_listed_and_every_listed_name_is_used(backend, ledger):
    backend.watch(ledger, conversation_id="conv_7", include_content=True)
    fill(ledger)
    metrics = backend.metrics
    used = {name for span in backend.spans for name in span.attributes}
    used |= {name for points in metrics.values() for point in points for name in point.attributes}
    assert used == set(ATTRIBUTES)
    assert set(metrics) == set(METRICS)


def rows_under(heading: str) -> list[list[str]]:
    section = PAGE.read_text(encoding="utf-8").partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if "|" in line]
    return [row for row in rows[2:] if row]


def test_the_docs_list_every_attribute():
    assert rows_under("Attributes") == [[f"`{name}`", meaning] for name, meaning in ATTRIBUTES.items()]


def test_the_docs_list_every_metric():
    assert rows_under("Metrics") == [
        [f"`{name}`", "counter" if metric.buckets is None else "histogram", f"`{metric.unit}`", metric.meaning]
        for name, metric in METRICS.items()
    ]


def test_the_docs_name_every_kind_of_record():
    text = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f'`"{kind}"`' not in text] == []


def test_it_can_be_stopped(backend, ledger):
    telemetry = backend.watch(ledger)
    assert telemetry.active
    telemetry.stop()
    telemetry.stop()
    fill(ledger)
    assert not telemetry.active
    assert backend.spans == ()


class Broken:
    """A provider whose every part fails."""

    def __getattr__(self, name):
        raise RuntimeError("the backend is down")


class BrokenSpans(Broken):
    """Fails for each span."""

    def get_tracer(self, *args, **kwargs):
        return Broken()


def test_a_backend_that_fails_stops_nobody_and_is_logged_once(backend, ledger, caplog):
    backend.watch(ledger, tracer_provider=BrokenSpans())
    fill(ledger)
    fill(ledger)
    assert len(ledger) == 14
    assert caplog.text.count("telemetry failed") == 1
    assert values(backend.metrics["holdfast.undos"]) == {(): 2}


def test_a_backend_that_cannot_even_start_is_logged_once(backend, ledger, caplog):
    telemetry = backend.watch(ledger, tracer_provider=Broken(), meter_provider=Broken())
    fill(ledger)
    assert not telemetry.active
    assert caplog.text.count("telemetry failed") == 1


def test_references_that_are_no_text_for_exporters_are_mended(backend, ledger):
    backend.watch(ledger)
    ledger.add("eviction", references=["mem/\ud800"])
    assert backend.spans[0].attributes["holdfast.references"] == ("mem/?",)


async def test_it_starts_inside_an_event_loop(backend, ledger):
    backend.watch(ledger)
    fill(ledger)
    assert len(backend.spans) == 7


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"conversation_id": 7}, "conversation_id must be text, got int"),
        ({"include_content": "false"}, "include_content must be True or False"),
        ({"tool_spans": None}, "tool_spans must be True or False"),
    ],
)
def test_wrong_options_are_refused(ledger, option, said):
    with pytest.raises(InvalidTypeError, match=re.escape(said)):
        Telemetry.of(ledger, **option)


WITHOUT = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
from holdfast.ledger import Ledger
from holdfast.telemetry import Telemetry

ledger = Ledger()
telemetry = Telemetry.of(ledger, conversation_id="conv_7")
ledger.add("failure", error=OSError("disk full"))
telemetry.stop()
print(telemetry.active, len(ledger))
"""


def test_without_opentelemetry_nothing_happens_and_nothing_breaks():
    answer = subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert (answer.stdout, answer.stderr) == ("False 1\n", "")


def test_importing_it_does_not_import_opentelemetry():
    script = "import sys, holdfast.telemetry; print('opentelemetry' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
