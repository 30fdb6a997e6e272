"""What one step of a JSON path chooses: by key, by index, by slice, everything, or by a condition."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.selection.expressions import Condition

__all__ = [
    "MISSING",
    "OutOfStepsError",
    "Part",
    "Segment",
    "Selector",
    "Steps",
    "by_index",
    "by_key",
    "by_slice",
    "every_part",
    "parts_of",
    "path_text",
    "where",
]

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()
"""What a path leads to where there is nothing, which is not null."""

Part: TypeAlias = tuple[str | int, Any]
_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class OutOfStepsError(Exception):
    """The steps that a selection may take are used up."""


class Steps:
    """How many values may still be looked at."""

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise OutOfStepsError


Selector: TypeAlias = Callable[[Any, Steps], Iterable[Part]]


@dataclass(frozen=True)
class Segment:
    """One step of a path. `end` is where it ends in the path's text; `name` is the key it asks for, if just one."""

    selectors: tuple[Selector, ...]
    descendants: bool
    text: str
    end: int
    name: str | None = None


def parts_of(value: Any) -> Iterable[Part]:
    """Return the members of an object, the items of a list, and nothing of all else."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def by_key(name: str) -> Selector:
    """Choose the member with this key."""
    return lambda value, steps: [(name, value[name])] if isinstance(value, dict) and name in value else []


def by_index(index: int) -> Selector:
    """Choose one item; a negative index counts from the end."""

    def select(value: Any, steps: Steps) -> Iterable[Part]:
        if not isinstance(value, list) or not -len(value) <= index < len(value):
            return []
        return [(index % len(value), value[index])]

    return select


def by_slice(start: int | None, stop: int | None, step: int | None) -> Selector:
    """Choose items as a Python slice does; a step of 0 chooses none."""

    def select(value: Any, steps: Steps) -> Iterator[Part]:
        if isinstance(value, list) and step != 0:
            for index in range(*slice(start, stop, step).indices(len(value))):
                steps.take()
                yield index, value[index]

    return select


def every_part(value: Any, steps: Steps) -> Iterator[Part]:
    """Choose all members or items."""
    for part in parts_of(value):
        steps.take()
        yield part


def where(condition: Condition) -> Selector:
    """Choose the members or items that meet a condition, which is asked with the value and the steps."""
    return lambda value, steps: (part for part in every_part(value, steps) if condition((part[1], steps)))


def path_text(keys: Iterable[str | int]) -> str:
    """Return the path that leads over these keys and indexes to one value and no other."""
    return "$" + "".join(map(_step_text, keys))


def _step_text(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if _SIMPLE_NAME.fullmatch(key):
        return f".{key}"
    quoted = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"['{quoted}']"
