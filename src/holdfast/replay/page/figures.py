"""Numbers as people read them, and exactly, for those who point at them."""

from __future__ import annotations

import math

from holdfast.replay.page.markup import Markup, element

__all__ = ["amount", "axis", "change", "counted", "dollars", "exact", "exact_dollars", "money", "percent", "short"]

_LARGE = ((10**12, "T"), (10**9, "B"), (10**6, "M"))
_SPACE = "\u00a0"


def exact(number: float) -> str:
    """Return a whole number, all of its digits in groups."""
    return f"{round(number):,}" if math.isfinite(number) else "–"


def short(number: float) -> str:
    """Return a number of at most seven characters: 98,112, or 1.2 M."""
    if math.isfinite(number):
        for size, unit in _LARGE:
            if abs(number) >= size:
                return f"{number / size:.1f}{_SPACE}{unit}"
    return exact(number)


def axis(number: int) -> str:
    """Return a round number for the scale of a picture: 250 k, 1.5 M."""
    for size, unit in (*_LARGE, (1_000, "k")):
        if number >= size:
            return f"{number / size:g}{_SPACE}{unit}"
    return str(number)


def amount(number: float) -> Markup:
    """Return a short number that says exactly what it is when it is pointed at."""
    told = exact(number)
    return element("span", short(number), title=None if told == short(number) else told)


def dollars(sum_: float) -> str:
    """Return $4.31, $1,204 or, below ten cents, two digits that say something: $0.0042."""
    if not math.isfinite(sum_):
        return "–"
    if sum_ == 0 or abs(sum_) >= 1_000:
        return f"${sum_:,.0f}"
    places = 2 if abs(sum_) >= 0.1 else min(8, 1 - math.floor(math.log10(abs(sum_))))
    return f"${sum_:.{places}f}"


def exact_dollars(sum_: float) -> str:
    """Return dollars to the millionth."""
    return f"${sum_:,.6f}" if math.isfinite(sum_) else "–"


def money(sum_: float) -> Markup:
    """Return dollars that say exactly what they are when they are pointed at."""
    return element("span", dollars(sum_), title=exact_dollars(sum_) if sum_ else None)


def percent(part: float, whole: float) -> str:
    """Return the share to a tenth of a percent. Only nothing is 0 %, and only all is 100 %."""
    if not whole or not math.isfinite(part / whole):
        return "–"
    tenths = math.floor(1000 * part / whole + 0.5)
    if 0 < part < whole:
        tenths = min(999, max(1, tenths))
    tens, rest = divmod(tenths, 10)
    return f"{tens:,}.{rest}{_SPACE}%" if rest else f"{tens:,}{_SPACE}%"


def change(now: float, before: float) -> str:
    """Return by how much *now* is off *before*: 71 % less, 4 % more, as much."""
    if now == before:
        return "as much"
    share = percent(abs(now - before), before) if before > 0 else exact_dollars(now)
    return f"{share} {'less' if now < before else 'more'}"


def counted(number: int, thing: str, things: str = "") -> str:
    """Return the number and what is counted, as one or as many."""
    return f"{short(number)} {thing if number == 1 else things or thing + 's'}"
