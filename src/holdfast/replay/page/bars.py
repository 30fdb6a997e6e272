"""Figures as bars: the bill by what it is paid for, and the values by where they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.replay.page.figures import dollars, exact_dollars, money, percent, short
from holdfast.replay.page.markup import Markup, element, join, name
from holdfast.replay.page.report import Policy, Report, Totals

__all__ = ["bill_bars", "paid_bar", "value_bars", "values_bar"]

_WHERE = (("kept", "kept in the window"), ("lookup", "one look-up away"), ("lost", "lost"))
_PAID_FOR = (
    ("reads", "read from the cache"),
    ("fresh", "new, written to the cache"),
    ("lookups", "look-ups"),
    ("summaries", "summaries"),
)


@dataclass(frozen=True)
class _Piece:
    kind: str
    size: float
    told: str


def bill_bars(report: Report) -> Markup:
    """Return what is paid with prompt caching, by what for, and beside it without any caching."""
    with_caching = [(policy, _paid_pieces(policy.totals, report)) for policy in report.policies]
    without = [(policy, [_uncached(policy.totals)]) for policy in report.policies]
    panels = [_panel("With prompt caching", with_caching), _panel("Without any caching", without)]
    return join(_legend(_PAID_FOR), element("div", *panels, class_="panels"))


def value_bars(report: Report) -> Markup:
    """Return for each policy where the values were when the agent used them again."""
    rows = [
        _row(policy, values_bar(policy.totals), element("span", _where(policy.totals))) for policy in report.policies
    ]
    return join(_legend(_WHERE), element("ul", *rows, class_="bars values"))


def paid_bar(totals: Totals, report: Report) -> Markup:
    """Return one bar for what is paid, on a scale that the bars of all policies share."""
    return _bar(_paid_pieces(totals, report), max(policy.totals.to_pay for policy in report.policies))


def values_bar(totals: Totals) -> Markup | None:
    """Return one bar for where the values were; None if none were asked about."""
    if not totals.values:
        return None
    pieces = [_Piece(key, totals.count("values", key), f"{says}: {_share(totals, key)}") for key, says in _WHERE]
    return _bar(pieces, totals.values)


def _share(totals: Totals, key: str) -> str:
    return f"{short(totals.count('values', key))} ({percent(totals.count('values', key), totals.values)})"


def _where(totals: Totals) -> str:
    if not totals.values:
        return "no values to ask about"
    told = " · ".join(f"{percent(totals.count('values', key), totals.values)} {says}" for key, says in _WHERE)
    back = totals.count("further")
    return (
        f"{told} (more look-ups bring back {short(back)} of {short(totals.count('values', 'lost'))})" if back else told
    )


def _paid_pieces(totals: Totals, report: Report) -> list[_Piece]:
    whole = totals.amount("bill", "cached")
    reads = min(whole, totals.amount("cached") * (report.price("cache_read") or 0) / 1_000_000)
    sums = {"reads": reads, "fresh": whole - reads}
    sums |= {key: totals.amount("bill", key) for key in ("lookups", "summaries")}
    return [_Piece(key, sums[key], f"{says}: {exact_dollars(sums[key])}") for key, says in _PAID_FOR]


def _uncached(totals: Totals) -> _Piece:
    sum_ = totals.amount("bill", "uncached")
    return _Piece("uncached", sum_, f"without caching: {exact_dollars(sum_)}")


def _panel(title: str, rows: Sequence[tuple[Policy, list[_Piece]]]) -> Markup:
    longest = max((_sum(pieces) for _, pieces in rows), default=0)
    bars = [_row(policy, _bar(pieces, longest), money(_sum(pieces))) for policy, pieces in rows]
    scale = element("small", f"full width: {dollars(longest)}")
    return element("section", element("h3", title, " ", scale), element("ul", *bars, class_="bars"), class_="panel")


def _sum(pieces: Sequence[_Piece]) -> float:
    return sum(piece.size for piece in pieces)


def _row(policy: Policy, bar: Markup | None, told: Markup) -> Markup:
    head = element("p", element("b", name(policy.name, 40)), " ", element("span", told, class_="told"))
    return element("li", head, bar)


def _bar(pieces: Sequence[_Piece], longest: float) -> Markup:
    rects, start = [], 0.0
    for piece in pieces:
        width = 100 * piece.size / longest if longest > 0 else 0
        rects.append(_rect(piece, start, width))
        start += width
    told = "; ".join(piece.told for piece in pieces)
    return element("svg", *rects, class_="bar", role="img", aria_label=told)


def _rect(piece: _Piece, start: float, width: float) -> Markup | None:
    if width <= 0:
        return None
    place = {"x": f"{start:.3f}%", "width": f"{width:.3f}%", "height": "100%"}
    fill = element("rect", element("title", piece.told), class_=f"fill {piece.kind}", **place)
    return join(fill, element("rect", class_="hatch", **place)) if piece.kind == "lost" else fill


def _legend(kinds: Sequence[tuple[str, str]]) -> Markup:
    keys = [element("li", element("i", class_=f"swatch fill {kind}"), element("span", says)) for kind, says in kinds]
    return element("ul", *keys, class_="legend")
