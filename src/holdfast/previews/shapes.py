"""The shape of JSON-like values: all values that stand at one path, seen together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

from holdfast.previews.examples import Examples
from holdfast.previews.quoting import evenly

__all__ = ["Place", "Step", "kind_of", "opened"]

_DEEPEST = 12
_FEWEST_KEYS_OF_A_MAP = 12
_MANY_KEYS = 40
_SIMILAR = 0.25
_REPEATED = 4
_MOST_OPENED = 400
_MOST_VALUES = 3_000
_LONGEST_NUMBER = 24
_KINDS = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "list", dict: "object"
}  # fmt: skip

_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class Step:
    """One level that was opened on the way to a place: lists, or objects used as maps with their distinct keys."""

    lengths: Sequence[int]
    keys: Examples | None = None
    pairs: Examples | None = None


@dataclass(frozen=True, eq=False)
class Place:
    """All values at one path, such as ``items[].id``, after the lists and maps on the way were opened.

    Of very many, some that are spread evenly are there, and *count* tells how many there are.
    """

    label: str
    values: Sequence[Any]
    parents: int = 1
    steps: tuple[Step, ...] = ()
    count: int = 0
    repeats_key: bool = False
    key: str = ""

    @cached_property
    def present(self) -> int:
        """In how many of the parents this place occurs."""
        return len(self.steps[0].lengths) if self.steps else max(self.count, len(self.values))

    @cached_property
    def kinds(self) -> Counter[str]:
        """How many values there are of each kind."""
        return Counter({_KINDS.get(kind, "object"): count for kind, count in Counter(map(type, self.values)).items()})

    @cached_property
    def texts(self) -> Examples:
        """The distinct strings here."""
        return Examples(Counter(self._of(str)))

    @cached_property
    def flags(self) -> Examples:
        """True and false, as far as they occur here."""
        return Examples(Counter({str(flag).lower(): count for flag, count in Counter(self._of(bool)).items()}))

    @cached_property
    def numbers(self) -> Examples:
        """The distinct numbers here, as they are written."""
        counts = Counter([*self._of(int), *self._of(float)])
        return Examples(Counter({str(number)[:_LONGEST_NUMBER]: count for number, count in counts.items()}))

    @cached_property
    def bounds(self) -> str:
        """The smallest and the largest number here."""
        numbers = [*self._of(int), *self._of(float)]
        return f"{str(min(numbers))[:_LONGEST_NUMBER]}..{str(max(numbers))[:_LONGEST_NUMBER]}"

    @cached_property
    def children(self) -> list[Place]:
        """The places below: for the most frequent keys of the objects here, and for the items of the lists here."""
        objects = self._of(dict)
        frequent = {key for key, _ in self.names.most_common(_MOST_OPENED)}
        found: dict[str, list[Any]] = {key: [] for key in self.names if key in frequent}
        for one in objects:
            for key in one.keys() & frequent:
                found[key].append(one[key])
        below = [self._marked(opened(key, values, len(objects))) for key, values in found.items()]
        lists = self._of(list)
        items = list(chain.from_iterable(lists))
        return [*below, opened("[]", items, max(len(items), len(lists)))] if lists else below

    @cached_property
    def names(self) -> Counter[str]:
        """How many of the objects here have each key."""
        return Counter(chain.from_iterable(self._of(dict)))

    def _of(self, kind: type) -> list[Any]:
        if _KINDS[kind] not in self.kinds:
            return []
        return [value for value in self.values if type(value) is kind]

    def _marked(self, child: Place) -> Place:
        """Return a place below, marked if its values are but the keys of the maps here once more."""
        keys = self.steps[-1].keys if self.steps else None
        repeats = keys is not None and not child.steps and child.values == _some(keys.values)
        return replace(child, repeats_key=True) if repeats else child


def opened(label: str, values: Sequence[Any], parents: int = 1) -> Place:
    """Return the place of these values; where all are lists, or objects used as maps, that of what they hold."""
    steps: list[Step] = []
    key = label
    while values and len(steps) < _DEEPEST:
        kinds = set(map(type, values))
        if kinds == {list}:
            label += "[]"
            steps.append(Step([len(value) for value in values]))
            values = list(chain.from_iterable(values))
        elif kinds == {dict} and _are_maps(values):
            label += ".*"
            steps.append(_map_step(values))
            values = list(chain.from_iterable(value.values() for value in values))
        else:
            break
    return Place(label, _some(values), parents, tuple(steps), len(values), key=key)


def _some(values: Sequence[_Value]) -> Sequence[_Value]:
    return values if len(values) <= _MOST_VALUES else [values[index] for index in evenly(len(values), _MOST_VALUES)]


def kind_of(value: object) -> str:
    """Return the name that JSON has for the kind of a value; whole numbers are integers."""
    return _KINDS.get(type(value), "object")


def _map_step(objects: Sequence[dict[str, Any]]) -> Step:
    lengths = [len(one) for one in objects]
    keys = Examples(Counter(chain.from_iterable(objects)))
    held = set(map(type, chain.from_iterable(one.values() for one in objects)))
    if held & {dict, list}:
        return Step(lengths, keys)
    some = [f"{key}: {value}" for one in _some(objects) for key, value in _some(list(one.items()))]
    return Step(lengths, keys, Examples(Counter(some)))


def _are_maps(objects: Sequence[dict[str, Any]]) -> bool:
    """Tell whether the keys are data, such as ids or languages, and not the names of fields."""
    objects = _some(objects)
    held = sum(map(len, objects))
    distinct = len(set(chain.from_iterable(objects)))
    if distinct < _FEWEST_KEYS_OF_A_MAP:
        return False
    if len(objects) > 1 and held > min(len(objects) * distinct * 0.5, _REPEATED * distinct):
        return False
    values = list(chain.from_iterable(one.values() for one in objects))
    kind, count = Counter(map(type, values)).most_common(1)[0]
    if count < 0.9 * len(values):
        return False
    return distinct >= _MANY_KEYS or (kind is dict and _are_similar([v for v in values if isinstance(v, dict)]))


def _are_similar(objects: Sequence[dict[str, Any]]) -> bool:
    distinct = len(set(chain.from_iterable(objects)))
    return sum(map(len, objects)) >= _SIMILAR * len(objects) * distinct
