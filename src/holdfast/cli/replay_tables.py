"""What replays come to, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.table import Table

from holdfast.cli.terminal import printable
from holdfast.replay import Candidate, Recommendation, Report

__all__ = ["candidates_table", "policies_table"]

_Totals: TypeAlias = Mapping[str, Any]


def policies_table(report: Report) -> Table:
    """Return the policies side by side, a figure in each row."""
    count, prices = len(report["recordings"]), report["prices"]
    title = f"{_counted(count, 'recording')}, window of {report['window']:,} tokens\n{_unmanaged(report['unmanaged'])}"
    caption = f"{report['tokens']} tokens, {printable(prices['name'])} as of {printable(prices['as_of'])}"
    table = Table(title=title, caption=caption, box=SIMPLE_HEAD, title_justify="left", caption_justify="left")
    table.add_column("", no_wrap=True)
    for policy in report["policies"]:
        table.add_column(printable(policy["name"]), justify="right", overflow="fold")
    for label, figure in _ROWS:
        table.add_row(label, *(figure(policy["totals"]) for policy in report["policies"]))
    return table


def candidates_table(recommendation: Recommendation) -> Table:
    """Return the policies that were tried, one in each row, the cheapest first."""
    rows = [[figure(candidate) for figure in _COLUMNS.values()] for candidate in recommendation.candidates]
    caption = "look-ups are in the bill; values are kept in the window, found by one look-up, or lost"
    table = Table(box=SIMPLE_HEAD, padding=0, caption=caption, caption_justify="left")
    table.add_column("policy", no_wrap=True)
    for label, figures in zip(_COLUMNS, zip(*rows, strict=True), strict=True):
        # Words fold sooner than figures do.
        table.add_column(label, justify="right", overflow="fold", min_width=max(map(len, figures)))
    for candidate, row in zip(recommendation.candidates, rows, strict=True):
        is_chosen = candidate is recommendation.chosen
        name = f"{'▸' if is_chosen else ' '} {candidate.policy.name}"
        table.add_row(name, *row, style="bold" if is_chosen else "")
    return table


def _unmanaged(alone: Mapping[str, int]) -> str:
    of = f"{alone['overflows']:,} of {_counted(alone['requests'], 'request')}"
    within = f", in {_counted(alone['recordings'], 'recording')}" if alone["overflows"] else ""
    return f"unmanaged, {of} would be above it{within}"


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def _number(name: str) -> Callable[[_Totals], str]:
    return lambda totals: f"{totals[name]:,}"


def _money(name: str) -> Callable[[_Totals], str]:
    return lambda totals: _dollars(totals["bill"][name])


def _values(name: str) -> Callable[[_Totals], str]:
    def shown(totals: _Totals) -> str:
        count, of = totals["values"][name], sum(totals["values"].values())
        return f"{count:,} {count / of:.1%}" if of else "none used"

    return shown


def _dollars(amount: float) -> str:
    """Return an amount as people write it, with as many digits as a small one needs."""
    return f"${amount:,.2f}" if amount >= 1 or not amount else f"${amount:.4f}"


_ROWS: tuple[tuple[str, Callable[[_Totals], str]], ...] = (
    ("requests", _number("requests")),
    ("… above the window", _number("overflows")),
    ("tokens sent", _number("tokens")),
    ("… of them cached", lambda totals: f"{totals['reuse']:.1%}"),
    ("… per request", _number("per_request")),
    ("… in the largest one", _number("peak")),
    ("sent history rewritten", _number("rewrites")),
    ("bill, cached", _money("cached")),
    ("… look-ups, on top", _money("lookups")),
    ("… summaries, on top", _money("summaries")),
    ("bill, not cached", _money("uncached")),
    ("results offloaded", _number("offloaded")),
    ("messages dropped", _number("dropped")),
    ("messages summarised", _number("summarised")),
    ("messages shortened", _number("shortened")),
    ("values in the window", _values("kept")),
    ("… one look-up away", _values("lookup")),
    ("… lost", _values("lost")),
    ("… of them, two away", _number("second_lookup")),
    ("runs that ended early", _number("failed")),
)

_COLUMNS: dict[str, Callable[[Candidate], str]] = {
    "bill": lambda each: _dollars(each.bill.total),
    "look-ups": lambda each: _dollars(each.bill.lookups),
    "tokens": lambda each: f"{each.counts.tokens:,}",
    "peak": lambda each: f"{each.counts.peak:,}",
    "too large": lambda each: f"{each.refused:,}",
    "kept": lambda each: f"{each.counts.kept:,}",
    "found": lambda each: f"{each.counts.lookup:,}",
    "lost": lambda each: f"{each.counts.lost:,}",
}
