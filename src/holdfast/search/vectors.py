"""The vectors of chunks, normalised, one behind the other, and the nearest of them to another.

Plain blocking code, for one thread at a time. NumPy is used if it is there, and is many times as fast.
"""

from __future__ import annotations

import math
import operator
from array import array
from collections.abc import Callable, Iterable
from functools import cache
from heapq import nlargest
from importlib import import_module
from typing import Any

__all__ = ["Vectors", "normalised"]

_BYTES_OF_A_NUMBER = 4
_OVERHEAD = 200


def normalised(values: Iterable[float]) -> array[float]:
    """Return a vector as one of length 1; one of length 0 stays. Raises ValueError or TypeError for what is none."""
    numbers = array("d", values)
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        raise ValueError("a vector must be of finite numbers")
    return array("f", (number / (length or 1.0) for number in numbers))


class Vectors:
    """Vectors by number, all of the same dimension: that of the first."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._places: dict[int, int] = {}
        self._values = array("f")
        self.dimension = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, number: object) -> bool:
        return number in self._places

    @property
    def size_of_one(self) -> int:
        """How many bytes each of them takes."""
        return _BYTES_OF_A_NUMBER * self.dimension + _OVERHEAD

    def add(self, number: int, vector: array[float]) -> None:
        """Keep a vector of the right dimension, under a number that has none."""
        self.dimension = self.dimension or len(vector)
        self._places[number] = len(self._numbers)
        self._numbers.append(number)
        self._values.extend(vector)

    def discard(self, number: int) -> None:
        """Forget a vector: the last one takes its place. An unknown number is fine."""
        place = self._places.pop(number, None)
        if place is None:
            return
        last, values = self._numbers.pop(), self._values[-self.dimension :]
        del self._values[-self.dimension :]
        if last != number:
            self._numbers[place] = last
            self._places[last] = place
            self._values[place * self.dimension : (place + 1) * self.dimension] = values

    def nearest(self, vector: array[float], limit: int, is_wanted: Callable[[int], bool] | None) -> list[int]:
        """Return the numbers of the nearest vectors, the nearest first, of those that are wanted: None means all."""
        if len(vector) != self.dimension or not self._numbers:
            return []
        likeness = zip(self._likeness(vector), self._numbers, strict=True)
        wanted = ((alike, number) for alike, number in likeness if is_wanted is None or is_wanted(number))
        return [number for _, number in nlargest(limit, wanted)]

    def _likeness(self, vector: array[float]) -> Iterable[float]:
        if numpy := _numpy():
            rows = numpy.frombuffer(self._values, dtype="float32").reshape(-1, self.dimension)
            found: list[float] = (rows @ numpy.frombuffer(vector, dtype="float32")).tolist()
            return found
        dimension, values = self.dimension, self._values
        starts = range(0, len(values), dimension)
        return (_product(values[start : start + dimension], vector) for start in starts)


def _sum_of_products(first: Iterable[float], second: Iterable[float]) -> float:
    return sum(map(operator.mul, first, second), 0.0)


# In C from Python 3.12 on.
_product: Callable[[Iterable[float], Iterable[float]], float] = getattr(math, "sumprod", _sum_of_products)


@cache
def _numpy() -> Any:
    try:
        return import_module("numpy")
    except ImportError:
        return None
