"""Two kinds of dice. For both, the first, the least and the fewest are the simplest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

__all__ = ["Dice", "FastDice", "ShrinkingDice"]

T = TypeVar("T")


class Dice(Protocol):
    """All choices that make a history."""

    def chance(self, percent: int) -> bool:
        """True in so many of a hundred cases."""
        ...

    def below(self, bound: int) -> int:
        """A number from 0 to *bound* - 1."""
        ...

    def pick(self, options: Sequence[T]) -> T:
        """One of them."""
        ...

    def repeat(self, most: int, step: Callable[[], object]) -> None:
        """Take the step up to *most* times."""
        ...


class FastDice:
    """Draws by `Random.random` alone, several times faster than `randrange` and `choice`."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def chance(self, percent: int) -> bool:
        return self._random() * 100 < percent

    def below(self, bound: int) -> int:
        return int(self._random() * bound)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self._random() * len(options))]

    def repeat(self, most: int, step: Callable[[], object]) -> None:
        for _ in range(int(self._random() * (most + 1))):
            step()


class ShrinkingDice:
    """Draws by hypothesis; asks before each repetition, so that any one of them can be left out."""

    def __init__(self, draw: DrawFn, strategies: Any) -> None:
        self._draw = draw
        self._strategies = strategies

    def chance(self, percent: int) -> bool:
        return self.below(100) >= 100 - percent

    def below(self, bound: int) -> int:
        return cast(int, self._draw(self._strategies.integers(0, bound - 1)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def repeat(self, most: int, step: Callable[[], object]) -> None:
        once = self._strategies.builds(lambda: self.below(most + 1) and (step(), True))
        for _ in range(most):
            if not self._draw(once):
                return
