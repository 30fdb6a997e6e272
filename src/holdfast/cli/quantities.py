"""Durations and sizes as people write them: ``7d``, ``1d12h``, ``2GB``, ``1.5GiB``."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import click

from holdfast.errors import InvalidValueError

__all__ = ["DURATION", "SIZE", "Quantity", "duration_text", "parse_duration", "parse_size"]

_SECONDS_IN = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_DURATION = re.compile("".join(rf"(?:({_NUMBER}){unit})?" for unit in _SECONDS_IN), re.IGNORECASE)
_BYTES_IN = {
    "": 1,
    "b": 1,
    **{unit: 1000**power for power, letter in enumerate("kmgt", 1) for unit in (letter, f"{letter}b")},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
_SIZE = re.compile(rf"({_NUMBER}) ?([a-z]*)", re.IGNORECASE)


def parse_duration(text: str) -> float:
    """Return seconds. Units go from the longest to the shortest, as in ``1d12h``."""
    found = _DURATION.fullmatch(text.strip())
    amounts = zip(found.groups(), _SECONDS_IN.values(), strict=True) if found else ()
    seconds = sum(float(number) * unit for number, unit in amounts if number)
    if not seconds:
        raise InvalidValueError(f"a duration is positive and looks like 90s, 15m, 12h, 7d, 2w or 1d12h, got {text!r}")
    return seconds


def parse_size(text: str) -> int:
    """Return bytes. KB, MB, GB and TB, or K, M, G and T, count in thousands; KiB, MiB, GiB and TiB in 1024s."""
    found = _SIZE.fullmatch(text.strip())
    number, unit = found.groups() if found else ("0", "")
    size = int(float(number) * _BYTES_IN.get(unit.lower(), 0))
    if not size:
        raise InvalidValueError(f"a size is positive and looks like 1000000, 500KB, 2GB or 1.5GiB, got {text!r}")
    return size


def duration_text(seconds: float) -> str:
    """Write a duration by its longest unit of days and below, and the next one; `parse_duration` reads it again."""
    whole = max(int(seconds), 0)
    for (unit, length), (lesser, shorter) in pairwise(list(_SECONDS_IN.items())[1:]):
        if whole >= length:
            amount, rest = divmod(whole, length)
            return f"{amount}{unit}" + (f"{rest // shorter}{lesser}" if rest >= shorter else "")
    return f"{whole}s"


class Quantity(click.ParamType):  # type: ignore[type-arg]
    """An option's value that *parse* turns into a number, or refuses by a ValueError that names the allowed forms."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number."""
        try:
            return self._parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = Quantity("duration", parse_duration)
SIZE = Quantity("size", parse_size)
