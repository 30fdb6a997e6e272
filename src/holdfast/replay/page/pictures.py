"""The section of the pictures: which recording is drawn, what the colours mean, and a picture for each policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.replay.page.chart import chart, legend
from holdfast.replay.page.figures import counted, exact
from holdfast.replay.page.island import Shown
from holdfast.replay.page.markup import Markup, cut_within, element, name
from holdfast.replay.page.report import Report

__all__ = ["pictures"]

_KEYS = "Point at a picture, or move in it with the arrow keys; Page Up and Page Down go from mark to mark."


def pictures(report: Report, shown: Sequence[Shown]) -> Iterator[Markup]:
    """Yield the choice, the legend, and the pictures of the first recording, which are there without a script."""
    if not shown:
        yield element("p", "There is no recording to draw.", class_="lead")
        return
    first = shown[0]
    drawn = zip(first.recording.under, first.traces, strict=True)
    scale = first.scale_at_first
    yield _choice(report, shown)
    yield legend(report)
    yield element("div", *(chart(report, place, *each, scale) for place, each in enumerate(drawn)), class_="charts")
    yield element("p", _KEYS, id="keys", hidden=True, class_="lead")


def _choice(report: Report, shown: Sequence[Shown]) -> Markup:
    """Return what page.js brings to life, and until then the name of the recording that is drawn."""
    options = [element("option", _option(each, report), value=place) for place, each in enumerate(shown)]
    zoom = shown[0].zoom
    box = element("input", type="checkbox", id="near", autocomplete="off", checked=zoom is not None and zoom.at_first)
    return element(
        "p",
        element("label", "Recording", for_="recording"),
        element("select", *options, id="recording", hidden=True),
        element("span", name(shown[0].recording.name, 100), id="still"),
        element("label", box, " ", element("span"), class_="zoom", hidden=True),
        _left_out(len(shown), len(report.recordings)),
        class_="choice",
    )


def _option(shown: Shown, report: Report) -> str:
    recording = shown.recording
    peak = exact(recording.under[report.baseline].peak)
    return f"{cut_within(recording.name, 60) or '(no name)'} · {counted(recording.calls, 'call')}, peak {peak}"


def _left_out(shown: int, recordings: int) -> Markup | None:
    if shown == recordings:
        return None
    told = f"the {shown} largest of {exact(recordings)} recordings; all of them are in --json"
    return element("small", told, id="left-out", hidden=True)
