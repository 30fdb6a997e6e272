"""The context over time as a stacked picture. page.js draws the same when another recording is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from holdfast.replay.page.figures import axis, counted, exact, percent, short
from holdfast.replay.page.markup import Markup, cut, element, join, name
from holdfast.replay.page.report import Policy, Report, Series
from holdfast.replay.page.traces import KINDS, Mark, Scale, Step, Trace

__all__ = ["area", "caption", "chart", "legend", "ticks"]

_GLYPHS = {"offload": "M-2.5 12V4h5v8z", "reduction": "M-5 3h10l-5 10z", "failure": "M-4 3l8 9M4 3l-8 9"}
_MEANINGS = {
    "offload": "results went to storage",
    "reduction": "history was reduced",
    "failure": "the run ended here",
}


def chart(report: Report, place: int, series: Series, trace: Trace, scale: Scale) -> Markup:
    """Return the picture of one policy, with the figures of its largest request below."""
    policy = report.policies[place]
    frame = element(
        "div",
        _gutter(scale),
        _lane(trace.marks, scale),
        _plot(report, place, policy, series, trace, scale),
        element("p", element("span", "call 1"), element("span", exact(scale.calls), class_="last"), class_="calls"),
        class_="frame",
    )
    heading = element("h3", name(policy.name, 60))
    told = element("p", caption(series, report.window), class_="caption")
    return element("figure", heading, told, frame, _readout(report, trace), class_="chart")


def caption(series: Series, window: int) -> str:
    """Return what the picture shows, in a line."""
    if not series.requests:
        return "no requests"
    above = sum(request.tokens > window for request in series.requests) if window > 0 else 0
    reductions = sum(event.kind == "reduction" for event in series.events)
    offloads = sum(event.kind == "offload" for event in series.events)
    told = [f"peak {short(series.peak)}", f"{exact(above)} above the window" if window > 0 else ""]
    told += [counted(offloads, "offload")] * bool(offloads) + [counted(reductions, "reduction")] * bool(reductions)
    return " · ".join(filter(None, told))


def area(heights: Sequence[int], floor: int = 1000) -> str:
    """Return the path of a filled step line down to *floor*; page.js builds the same."""
    path = [f"M0 {floor}"]
    for height in heights:
        path.append(f"V{min(height, floor)}h1")
    return "".join((*path, f"V{floor}z")) if heights else ""


def beyond(peak: int, top: int) -> str:
    """Return what the upper edge of a picture cuts off, if it does; page.js says the same."""
    return f"↑ {exact(peak)}" if peak > top else ""


def ticks(scale: Scale) -> list[tuple[float, str]]:
    """Return where the round numbers stand, in percent from the top, and what they say."""
    return [(scale.height(tick) / 10, axis(tick)) for tick in scale.ticks]


def legend(report: Report) -> Markup:
    """Return what the colours, the lines and the marks mean, in the order of the stack from the bottom."""
    parts = [_key(element("i", class_=f"swatch part{place % 6}"), part) for place, part in enumerate(report.parts)]
    over = _key(element("i", _hatched(), class_="swatch over"), "above the window")
    marks = [_key(_glyph_key(kind), f"{kind}: {meaning}") for kind, meaning in _MEANINGS.items()]
    stack = element("ul", *parts, over, class_="legend", aria_label="Parts, from the bottom of the stack")
    return join(stack, element("ul", *marks, class_="legend", aria_label="Marks"))


def _hatched() -> Markup:
    hatch = element("rect", width="100%", height="100%", class_="hatch")
    return element("svg", hatch, width=12, height=12, aria_hidden="true")


def _key(sign: Markup, what: str) -> Markup:
    return element("li", sign, element("span", what))


def _glyph_key(kind: str) -> Markup:
    glyph = element("path", d=_GLYPHS[kind], transform="translate(7 0)", class_=f"mark {kind}")
    return element("svg", glyph, width=14, height=16, aria_hidden="true")


def _gutter(scale: Scale) -> Markup:
    texts = [element("text", label, x="100%", y=f"{place}%", dy=".32em") for place, label in ticks(scale)]
    return element("svg", *texts, class_="gutter", aria_hidden="true")


def _lane(marks: Sequence[Mark], scale: Scale) -> Markup:
    # Glyphs keep their shape because only their place is in percent.
    glyphs = (
        element(
            "svg",
            element("path", element("title", mark.what), d=_GLYPHS[mark.kind], class_=f"mark {mark.kind}"),
            x=_across(mark.step, scale),
        )
        # What matters more is painted over what matters less.
        for mark in sorted(marks, key=lambda mark: KINDS.index(mark.kind))
    )
    return element("svg", *glyphs, class_="lane", aria_hidden="true")


def _plot(report: Report, place: int, policy: Policy, series: Series, trace: Trace, scale: Scale) -> Markup:
    label = f"Context under {cut(policy.name, 60)}: {caption(series, report.window)}"
    return element(
        "svg",
        element("g", *(_line(f"{y}%", "grid") for y, _ in ticks(scale)), class_="grids"),
        _areas(trace, scale, len(report.parts)),
        _overflow(place, trace, scale, report.window),
        element(
            "g", *(_down(mark.step, scale, "cut") for mark in trace.marks if mark.kind != "offload"), class_="cuts"
        ),
        _window(report.window, scale),
        element("text", beyond(series.peak, scale.top), x="100%", y=0, dy="1.1em", class_="beyond"),
        _down(trace.peak, scale, "cursor"),
        class_="plot",
        role="img",
        aria_label=label,
    )


def _areas(trace: Trace, scale: Scale, parts: int) -> Markup:
    """Return the parts from the top of the stack down, each painted over the one before."""
    sums = [tuple(accumulate(step.request.parts)) for step in trace.steps]
    paths = [
        element("path", d=area([scale.height(each[part]) for each in sums]), class_=f"part{part % 6}")
        for part in reversed(range(parts))
    ]
    box = {"viewBox": f"0 0 {max(1, scale.steps)} 1000", "preserveAspectRatio": "none"}
    return element("svg", *paths, class_="areas", width="100%", height="100%", **box)


def _overflow(place: int, trace: Trace, scale: Scale, window: int) -> Markup:
    """Return what is above the window, hatched."""
    # The clip is in shares of the picture, so that the hatch keeps its slant at any width.
    heights = [scale.height(step.request.tokens) for step in trace.steps] if window > 0 else []
    outline = area(heights, scale.height(window) if window > 0 else 0)
    path = element("path", d=outline, transform=f"scale({1 / max(1, scale.steps)} 0.001)")
    clip = element("clipPath", path, id=f"above{place}", clipPathUnits="objectBoundingBox")
    sheets = [element("rect", width="100%", height="100%", class_=each) for each in ("tint", "hatch")]
    return join(clip, element("g", *sheets, clip_path=f"url(#above{place})", class_="above"))


def _window(window: int, scale: Scale) -> Markup | None:
    if window <= 0:
        return None
    is_shown = window <= scale.top
    y = f"{scale.height(window) / 10}%" if is_shown else "0%"
    told = f"window {exact(window)}"
    label = element(
        "text",
        told if is_shown else f"↑ {told}",
        x=6,
        y=y,
        dy="-.45em" if is_shown else "1.1em",
        class_="window-label",
    )
    line = element("line", x1=0, x2="100%" if is_shown else "0%", y1=y, y2=y, class_="window")
    return element("g", line, label, class_="window-group")


def _line(y: str, kind: str) -> Markup:
    return element("line", x1=0, x2="100%", y1=y, y2=y, class_=kind)


def _down(step: int, scale: Scale, kind: str) -> Markup:
    x = _across(step, scale)
    return element("line", x1=x, x2=x, y1=0, y2="100%", class_=kind)


def _across(step: int, scale: Scale) -> str:
    return f"{100 * (step + 0.5) / max(1, scale.steps):.2f}%"


def _readout(report: Report, trace: Trace) -> Markup:
    step = trace.steps[trace.peak] if trace.steps else None
    figures = step.request.parts if step else (0,) * len(report.parts)
    rows = [
        element(
            "li",
            element("i", class_=f"swatch part{place % 6}"),
            element("span", part),
            element("b", exact(figures[place])),
        )
        for place, part in enumerate(report.parts)
    ]
    here = next((mark.what for mark in trace.marks if mark.step == trace.peak), "")
    told = element("p", _at(step, "Peak, call"), class_="at")
    return element("div", told, element("ul", *reversed(rows)), element("p", here, class_="event"), class_="readout")


def _at(step: Step | None, word: str) -> str:
    if step is None:
        return "no requests"
    request = step.request
    told = (
        f"{word} {exact(step.call)}: {exact(request.tokens)} tokens, {percent(request.cached, request.tokens)} cached"
    )
    return told + (", rewritten" if step.rewritten else "")
