"""The recordings that can be chosen, as data for page.js: as differences, which are short, and never as markup."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

from holdfast.replay.page.chart import caption, ticks
from holdfast.replay.page.markup import cut
from holdfast.replay.page.report import Recording, Report
from holdfast.replay.page.traces import Scale, Step, Trace, Zoom, scale_of, trace_of, zoom_of

__all__ = ["MOST_RECORDINGS", "Shown", "data_of", "json_island", "shown_recordings"]

MOST_RECORDINGS = 24
_MOST_CHARACTERS = 900_000
# What an HTML parser could take for the end of the script, or a JavaScript parser for the end of a line.
_ESCAPES = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


@dataclass(frozen=True)
class Shown:
    """A recording that the page draws."""

    recording: Recording
    scale: Scale
    zoom: Zoom | None
    traces: tuple[Trace, ...]
    data: str

    @property
    def scale_at_first(self) -> Scale:
        """The scale that its pictures begin with."""
        return self.zoom.scale if self.zoom is not None and self.zoom.at_first else self.scale


def shown_recordings(report: Report) -> list[Shown]:
    """Return the recordings with the highest peaks, the unmanaged agent's above all, as many as a page can hold."""
    most = sorted(report.recordings, key=lambda each: _peaks(each, report.baseline), reverse=True)[:MOST_RECORDINGS]
    return list(_that_fit(_shown(each, report) for each in most))


def data_of(report: Report, shown: Sequence[Shown]) -> str:
    """Return the JSON that page.js reads."""
    return f'{{"parts":{_json(report.parts)},"recordings":[{",".join(each.data for each in shown)}]}}'


def json_island(data: str) -> str:
    """Return *data*, which is JSON, so that nothing in it ends or opens a script."""
    return data.translate(_ESCAPES)


def _peaks(recording: Recording, baseline: int) -> tuple[int, int]:
    peaks = recording.peaks
    return (peaks[baseline], max(peaks)) if peaks else (0, 0)


def _that_fit(shown: Iterable[Shown]) -> Iterator[Shown]:
    room = _MOST_CHARACTERS
    for place, each in enumerate(shown):
        room -= len(each.data)
        if place and room < 0:
            return
        yield each


def _shown(recording: Recording, report: Report) -> Shown:
    scale = scale_of(recording, report.window)
    traces = tuple(trace_of(series, scale) for series in recording.under)
    series = zip(recording.under, traces, strict=True)
    zoom = zoom_of(recording, report.window)
    data = {
        "calls": scale.calls,
        "steps": scale.steps,
        "window": max(0, report.window),
        "whole": {"top": scale.top, "ticks": ticks(scale)},
        "near": zoom and {"top": zoom.scale.top, "ticks": ticks(zoom.scale), "to": zoom.to, "first": zoom.at_first},
        "series": [{"caption": caption(each, report.window), **_encoded(trace)} for each, trace in series],
    }
    return Shown(recording, scale, zoom, traces, _json(data))


def _encoded(trace: Trace) -> dict[str, Any]:
    steps = trace.steps
    columns = zip(*(step.request.parts for step in steps), strict=True)
    return {
        "calls": _differences(step.call for step in steps),
        "parts": [_differences(column) for column in columns],
        "cached": _beyond_the_last(steps),
        "rewritten": [place for place, step in enumerate(steps) if step.rewritten],
        "marks": [[mark.step, mark.kind, cut(mark.what, 480)] for mark in trace.marks],
        "peak": trace.peak,
    }


def _differences(numbers: Iterable[int]) -> list[int]:
    return [after - before for before, after in pairwise(chain([0], numbers))]


def _beyond_the_last(steps: Sequence[Step]) -> list[int]:
    """Return how many cached tokens there are beyond the request before: mostly none."""
    before = chain([0], (step.request.tokens for step in steps))
    return [step.request.cached - tokens for step, tokens in zip(steps, before, strict=False)]


def _json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"))
