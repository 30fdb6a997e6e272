"""The requests of a recording as a picture shows them: at most so many steps, with every peak and every event."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from holdfast.replay.page.figures import counted, exact
from holdfast.replay.page.markup import cut
from holdfast.replay.page.report import Event, Recording, Request, Series

__all__ = ["KINDS", "MOST_STEPS", "Mark", "Scale", "Step", "Trace", "Zoom", "scale_of", "trace_of", "zoom_of"]

MOST_STEPS = 600
# The last of them that a mark stands for gives it its shape.
KINDS = ("offload", "reduction", "failure")
_TOLD, _WHAT, _FAILURE = 2, 90, 300
# How much closer a zoom has to come to be offered, and to be there at first.
_OFFERED, _AT_FIRST = 1.3, 2.5
# How far above the window a picture goes on that shows no more.
_ABOVE = 1.15


@dataclass(frozen=True)
class Scale:
    """What all pictures of a recording share: *calls* in *steps* from left to right, up to *top* tokens."""

    calls: int
    steps: int
    top: int
    ticks: tuple[int, ...]

    def step_of(self, call: int) -> int:
        """Return the step that shows the call at *call*."""
        return min(call, self.calls - 1) * self.steps // self.calls if self.calls else 0

    def height(self, tokens: int) -> int:
        """Return how far below the upper edge *tokens* end, in thousandths of the picture."""
        return 1000 - math.floor(1000 * tokens / self.top + 0.5)


@dataclass(frozen=True)
class Zoom:
    """A scale that comes closer, what it is closer *to*, and whether a picture begins with it."""

    scale: Scale
    to: str
    at_first: bool


@dataclass(frozen=True)
class Step:
    """The largest request of a step: the call, counted from 1, and whether any of the step was rewritten."""

    call: int
    request: Request
    rewritten: bool


@dataclass(frozen=True)
class Mark:
    """All that happened within a step."""

    step: int
    kind: str
    what: str


@dataclass(frozen=True)
class Trace:
    """A series, ready to be drawn."""

    steps: tuple[Step, ...]
    marks: tuple[Mark, ...]

    @property
    def peak(self) -> int:
        """The step with the largest request; the first of several."""
        return max(range(len(self.steps)), key=lambda place: self.steps[place].request.tokens, default=0)


def scale_of(recording: Recording, window: int) -> Scale:
    """Return the scale that shows all policies and the window."""
    return _scale_up_to(max(window, 1, *(series.peak for series in recording.under)), recording)


def zoom_of(recording: Recording, window: int) -> Zoom | None:
    """Return the scale that shows the smaller of window and highest request at its best; None if it is no closer."""
    highest = max((series.peak for series in recording.under), default=0)
    if min(window, highest) <= 0:
        return None
    is_crossed = window < highest
    near = _scale_up_to(round(window * _ABOVE) if is_crossed else highest, recording)
    closer = scale_of(recording, window).top / near.top
    if closer < _OFFERED:
        return None
    return Zoom(near, "the window" if is_crossed else "the requests", closer > _AT_FIRST)


def trace_of(series: Series, scale: Scale) -> Trace:
    """Return the steps and the marks of *series*."""
    return Trace(tuple(_steps(series.requests, scale)), tuple(_marks(series, scale)))


def _scale_up_to(highest: int, recording: Recording) -> Scale:
    top = math.ceil(highest * 1.08)
    spacing = next(each for each in _round_numbers() if top / each <= 5)
    return Scale(recording.calls, min(recording.calls, MOST_STEPS), top, tuple(range(0, top + 1, spacing)))


def _round_numbers() -> Iterator[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


def _steps(requests: Sequence[Request], scale: Scale) -> Iterator[Step]:
    for _, group in groupby(enumerate(requests), key=lambda numbered: scale.step_of(numbered[0])):
        together = list(group)
        call, request = max(together, key=lambda numbered: numbered[1].tokens)
        yield Step(call + 1, request, any(each.rewritten for _, each in together))


def _marks(series: Series, scale: Scale) -> Iterator[Mark]:
    def moment(event: Event) -> tuple[int, bool]:
        return scale.step_of(event.request), event.request >= len(series.requests) and event.kind != "failure"

    for (step, is_after), group in groupby(series.events, key=moment):
        together = list(group)
        kinds = {event.kind for event in together}
        kind = next((each for each in reversed(KINDS) if each in kinds), KINDS[0])
        yield Mark(step, kind, f"after the last call: {_told(together)}" if is_after else _told(together))


def _told(events: Sequence[Event]) -> str:
    weightiest = sorted(events, key=lambda event: (event.kind != "failure", -event.tokens))
    told = "; ".join(_sentence(event) for event in weightiest[:_TOLD])
    if not (rest := weightiest[_TOLD:]):
        return told
    kinds = ", ".join(counted(count, cut(kind, 20)) for kind, count in Counter(event.kind for event in rest).items())
    return f"{told}; and {kinds} more, {exact(sum(event.tokens for event in rest))} tokens less"


def _sentence(event: Event) -> str:
    less = f", {exact(event.tokens)} tokens less" if event.tokens else ""
    longest = _FAILURE if event.kind == "failure" else _WHAT
    return f"{cut(event.kind, 20)}: {cut(event.what, longest)}{less}"
