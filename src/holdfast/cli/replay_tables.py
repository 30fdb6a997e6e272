"""What replays come to, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from holdfast.cli.terminal import printable, say
from holdfast.replay import Candidate, Recommendation, Report

__all__ = ["print_candidates", "print_policies"]

_WIDEST = 1_000
# For terminals that know no other characters, and just as wide.
_PLAIN = str.maketrans("…─▸–", ".->-")

_Totals: TypeAlias = Mapping[str, Any]
_Policy: TypeAlias = Mapping[str, Any]


def print_policies(report: Report) -> None:
    """Print the policies side by side, a figure in each row."""
    prices = report["prices"]
    as_of = f" as of {prices['as_of']}" if prices["as_of"] else ""
    say(f"{_counted(len(report['recordings']), 'recording')}, window of {report['window']:,} tokens")
    say(_unmanaged(report["unmanaged"]))
    for policies in _that_fit(report["policies"]):
        _print(_policies(policies))
    say(f"{report['tokens']} tokens, {prices['name']}{as_of}")
    if early := [policy["name"] for policy in report["policies"] if policy["totals"]["failed"]]:
        say(f"ended early, so that less was sent than by others: {', '.join(early)}")


def print_candidates(recommendation: Recommendation) -> None:
    """Print the policies that were tried, one in each row, the cheapest first."""
    _print(_candidates(recommendation))
    say("look-ups and summaries are in the bill; values are kept in the window, found by one look-up, or lost to it")


def _print(table: Table) -> None:
    """Print a table without blanks at the ends of its lines. Where there is no terminal, no figure is cut."""
    # Whatever names a file or a policy has, a terminal does not obey it.
    console = Console(markup=False, highlight=False, emoji=False)
    options = console.options
    if not console.is_terminal:
        options = options.update(width=max(console.width, _width(console, table)))
    for line in console.render_lines(table, options, pad=False):
        text = "".join(segment.text for segment in line).rstrip()
        is_bold = any(segment.style is not None and segment.style.bold for segment in line)
        say(text.translate(_PLAIN) if options.ascii_only else text, bold=is_bold)


def _that_fit(policies: Sequence[_Policy]) -> Iterator[Sequence[_Policy]]:
    """Yield policies as many at once as a terminal has room for: broken figures are hard to read."""
    console = Console()
    while policies:
        count = len(policies)
        while count > 1 and console.is_terminal and _width(console, _policies(policies[:count])) > console.width:
            count -= 1
        yield policies[:count]
        policies = policies[count:]


def _width(console: Console, table: Table) -> int:
    return Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum


def _policies(policies: Sequence[_Policy]) -> Table:
    table = Table(box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    for policy in policies:
        table.add_column(printable(policy["name"]), justify="right", overflow="fold")
    for label, figure in _ROWS:
        table.add_row(label, *(figure(policy["totals"]) for policy in policies))
    return table


def _candidates(recommendation: Recommendation) -> Table:
    rows = [[figure(candidate) for figure in _COLUMNS.values()] for candidate in recommendation.candidates]
    table = Table(box=SIMPLE_HEAD, padding=0)
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
    ("… of them, further off", _number("further")),
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
    "of them further off": lambda each: f"{each.counts.further:,}",
}
