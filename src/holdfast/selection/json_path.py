"""Parts of a JSON value chosen by a path: a documented part of JSONPath (RFC 9535).

======================  =================================================================================
``$``                   the whole value; may be left out in front of anything else
``.key`` ``['key']``    the member with that key; double quotes do as well
``[0]`` ``[-1]``        an item, from the start or from the end
``[0:10]`` ``[::-1]``   a slice, as in Python
``.*`` ``[*]``          all members or items
``[0,2]`` ``['a','b']`` several of them, in this order
``..key`` ``..*``       the same at any depth below, too
``[?@.price < 10]``     the members or items for which a condition holds
======================  =================================================================================

A condition has ``==  !=  <  <=  >  >=`` between paths such as ``@.a['b'][0]`` and texts in quotes, numbers, ``true``,
``false`` and ``null``; ``@.a`` alone, which asks whether it is there; ``contains(@.name, 'text')``, for a part of a
text, an item of a list or a key of an object; and ``&&``, ``||``, ``!`` and parentheses. Different kinds of values are
never equal, nor is one less than the other; lists and objects are equal to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.errors import InvalidValueError
from holdfast.selection.expressions import closest, listed
from holdfast.selection.json_path_syntax import parse_path
from holdfast.selection.json_selectors import OutOfStepsError, Segment, Steps, parts_of, path_text

__all__ = ["JsonPath", "Selection", "compile_path"]

_STEPS = 5_000_000
_STEPS_TO_EXPLAIN = 1_000_000

_Link: TypeAlias = Any
"""The way to a value: None for the whole, else the link of what holds it and the key or index there."""
_Node: TypeAlias = tuple[_Link, Any]


@dataclass(frozen=True)
class Selection:
    """What a path selects: the first so many, each with the path that leads to it alone, and how many there are.

    If not `complete`, the steps were used up, and `total` counts what was found until then.
    """

    matches: tuple[tuple[str, Any], ...]
    total: int
    complete: bool


@dataclass(frozen=True)
class JsonPath:
    """A path that can be followed in any value. Make it with `compile_path`."""

    text: str
    segments: tuple[Segment, ...]

    def select(self, value: Any, *, limit: int, steps: int = _STEPS) -> Selection:
        """Return the first *limit* matches, and count all of them, looking at no more than *steps* values."""
        if limit < 0 or steps < 1:
            raise InvalidValueError(f"limit must be 0 or more and steps 1 or more, got {limit} and {steps}")
        matches: list[_Node] = []
        total = 0
        walk = _Walk(self.segments, Steps(steps))
        for node in walk.nodes(value):
            total += 1
            if len(matches) < limit:
                matches.append(node)
        return Selection(tuple((_path_of(link), found) for link, found in matches), total, walk.complete)

    def explain(self, value: Any) -> str:
        """Say how far the path leads, and what there is where it leads no further."""
        walk = _Walk(self.segments, Steps(_STEPS_TO_EXPLAIN))
        if next(walk.nodes(value), None) is not None:
            return f"The path {self.text} selects something."
        if not walk.complete:
            return f"{self.text} selects nothing in the first {_STEPS_TO_EXPLAIN:,} values; begin with a longer path."
        link, found = walk.first[-1]
        segment = self.segments[len(walk.first) - 1]
        return (
            f"{_path_of(link)} is {_described(found)}; {segment.text} selects nothing there.{_advice(segment, found)}"
        )


def compile_path(path: str) -> JsonPath:
    """Read a path. An `InvalidValueError` shows the place of a mistake and says what was expected there."""
    return JsonPath(path, parse_path(path))


class _Walk:
    """Follows a path in depth, without recursion. `first` keeps the first value that each segment was reached with."""

    def __init__(self, segments: tuple[Segment, ...], steps: Steps) -> None:
        self._segments = segments
        self._steps = steps
        self.first: list[_Node] = []
        self.complete = True

    def nodes(self, value: Any) -> Iterator[_Node]:
        try:
            yield from self._nodes(value)
        except OutOfStepsError:
            self.complete = False

    def _nodes(self, value: Any) -> Iterator[_Node]:
        pending: list[Iterator[_Node]] = [iter([(None, value)])]
        while pending:
            node = next(pending[-1], None)
            if node is None:
                pending.pop()
                continue
            if len(pending) > len(self.first):
                self.first.append(node)
            if len(pending) > len(self._segments):
                yield node
            else:
                self._steps.take()
                pending.append(self._chosen(self._segments[len(pending) - 1], node))

    def _chosen(self, segment: Segment, node: _Node) -> Iterator[_Node]:
        for link, value in self._at_any_depth(node) if segment.descendants else [node]:
            for selector in segment.selectors:
                for key, part in selector(value, self._steps):
                    yield (link, key), part

    def _at_any_depth(self, node: _Node) -> Iterator[_Node]:
        yield node
        pending = [(node[0], iter(parts_of(node[1])))]
        while pending:
            link, parts = pending[-1]
            part = next(parts, None)
            if part is None:
                pending.pop()
                continue
            self._steps.take()
            if isinstance(part[1], (dict, list)):
                yield (link, part[0]), part[1]
                pending.append(((link, part[0]), iter(parts_of(part[1]))))


def _path_of(link: _Link) -> str:
    keys: list[str | int] = []
    while link is not None:
        link, key = link
        keys.append(key)
    return path_text(reversed(keys))


def _described(value: Any) -> str:
    match value:
        case dict():
            return f"an object with {_counted(len(value), 'key')}{': ' if value else ''}{listed(list(value))}"
        case list():
            first = f", the first of which is {_described_briefly(value[0])}" if value else ""
            return f"a list of {_counted(len(value), 'item')}{first}"
    return _described_briefly(value)


def _described_briefly(value: Any) -> str:
    match value:
        case dict():
            return f"an object with the keys {listed(list(value))}" if value else "an empty object"
        case list():
            return f"a list of {_counted(len(value), 'item')}"
        case str():
            return f"text of {_counted(len(value), 'character')}"
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
    return "a number"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _advice(segment: Segment, value: Any) -> str:
    if segment.name is None:
        return ""
    if isinstance(value, list) and value:
        return f" Its items are chosen by [0], [0:10] or [*], as in [*]{segment.text}."
    if isinstance(value, dict) and (names := closest(segment.name, value)):
        return f" Closest: {', '.join(path_text([name])[1:] for name in names)}."
    return ""
