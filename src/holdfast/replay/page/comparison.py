"""The policies side by side, measure by measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from holdfast.replay.page.figures import amount, money, percent, short
from holdfast.replay.page.markup import Markup, element, join, name
from holdfast.replay.page.report import Policy, Report, Totals

__all__ = ["comparison"]

_Better = Literal["less", "more"]


@dataclass(frozen=True)
class _Measure:
    says: str
    why: str
    figure: Callable[[Totals], float]
    shown: Callable[[Totals], Markup]
    better: _Better | None = None
    part: bool = False


def _count(key: str, says: str, why: str, better: _Better | None = None) -> _Measure:
    return _Measure(says, why, lambda totals: totals.count(key), lambda totals: amount(totals.count(key)), better)


def _bill(key: str, says: str, why: str, part: bool = True) -> _Measure:
    figure: Callable[[Totals], float] = lambda totals: totals.amount("bill", key)  # noqa: E731
    return _Measure(says, why, figure, lambda totals: money(totals.amount("bill", key)), "less", part)


def _value(key: str, says: str, why: str, better: _Better | None = None) -> _Measure:
    return _Measure(says, why, lambda totals: totals.count("values", key), partial(_counted_share, key), better)


def _counted_share(key: str, totals: Totals) -> Markup:
    count = totals.count("values", key)
    share = element("small", percent(count, totals.values)) if totals.values else None
    return join(amount(count), " ", share)


def _reuse(totals: Totals) -> float:
    return totals.amount("cached") / tokens if (tokens := totals.amount("tokens")) else 0


def _offloaded(totals: Totals) -> Markup:
    less = totals.count("offloaded_tokens")
    small = element("small", f"−{short(less)} tokens") if less else None
    return join(amount(totals.count("offloaded")), " ", small)


_TO_PAY = _Measure(
    "to pay",
    "With prompt caching, look-ups and summaries included. Answers of models are not in it.",
    lambda totals: totals.to_pay,
    lambda totals: money(totals.to_pay),
    "less",
)
_REUSE = _Measure(
    "prefix reuse",
    "How much of what was sent stood unchanged at the front of the request before, so that a cache serves it.",
    _reuse,
    lambda totals: element("span", percent(totals.amount("cached"), totals.amount("tokens"))),
    "more",
)
_OFFLOADED = _Measure(
    "offloaded",
    "Results that left for storage before they were sent, and by how much they shrank.",
    lambda totals: totals.count("offloaded"),
    _offloaded,
)
_GROUPS: tuple[tuple[str, tuple[_Measure, ...]], ...] = (
    (
        "Sent",
        (
            _count("requests", "requests", "Model calls, over all recordings."),
            _count("tokens", "tokens sent", "What all requests came to together.", "less"),
            _count("per_request", "per request", "The tokens of a request, on average.", "less"),
            _count("peak", "largest request", "The peak: the tokens of the largest single request.", "less"),
            _count("overflows", "above the window", "Requests that a provider would have refused.", "less"),
            _REUSE,
            _count("rewrites", "rewrites", "How often something already sent was sent changed: a cold cache.", "less"),
            _count("failed", "ended early", "Recordings that the policy could not bring to their end.", "less"),
        ),
    ),
    (
        "Paid",
        (
            _TO_PAY,
            _bill("cached", "requests", "What is sent, at the prices of cache reads and cache writes."),
            _bill("lookups", "look-ups", "What it costs to look up the values that were not in the window."),
            _bill("summaries", "summaries", "What the calls of a model for summaries cost."),
            _bill("uncached", "without caching", "The requests alone, if nothing were ever cached.", part=False),
        ),
    ),
    (
        "Left the window",
        (
            _OFFLOADED,
            _count("reductions", "reductions", "How often the history was made smaller."),
            _count("dropped", "dropped", "Messages that left whole."),
            _count("summarised", "summarised", "Messages that a summary stands for."),
            _count("shortened", "shortened", "Messages that stayed, with less in them."),
        ),
    ),
    (
        "Values used again",
        (
            _value("kept", "kept", "In the window when the agent used them.", "more"),
            _value(
                "lookup",
                "one look-up away",
                "Found by one search, or on one page of what stands behind a reference in the window.",
            ),
            _value("lost", "lost", "In neither.", "less"),
            _count("further", "… of them, further off", "Of the lost, those that more look-ups bring back."),
        ),
    ),
)


def comparison(report: Report) -> Markup:
    """Return the table. The best figure of a row is marked, where one is better than another."""
    corner = element("th", element("span", "measure", class_="spoken"), scope="col")
    head = element("tr", corner, *(element("th", name(policy.name, 60), scope="col") for policy in report.policies))
    bodies = [_group(title, measures, report.policies) for title, measures in _GROUPS]
    table = element("table", element("thead", head), *bodies, class_="compare")
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label="Policies side by side")


def _group(title: str, measures: Sequence[_Measure], policies: Sequence[Policy]) -> Markup:
    head = element("th", title, scope="rowgroup", colspan=len(policies) + 1)
    rows = [_row(measure, policies) for measure in measures]
    return element("tbody", element("tr", head, class_="group"), *rows)


def _row(measure: _Measure, policies: Sequence[Policy]) -> Markup:
    best = _best(measure, policies)
    explained = element("details", element("summary", measure.says), element("p", measure.why))
    head = element("th", explained, scope="row", title=measure.why)
    cells = [_cell(measure, policy.totals, policy in best) for policy in policies]
    return element("tr", head, *cells, class_="part" if measure.part else None)


def _cell(measure: _Measure, totals: Totals, is_best: bool) -> Markup:
    if not is_best:
        return element("td", measure.shown(totals))
    mark = element("span", "◆", class_="diamond", aria_hidden="true")
    return element("td", mark, measure.shown(totals), element("span", " (best)", class_="spoken"), class_="best")


def _best(measure: _Measure, policies: Sequence[Policy]) -> list[Policy]:
    """Return the policies with the best figure; none if all are as good.

    A policy that ended early sent less than it should have, and one whose requests are refused more than it could:
    neither competes.
    """
    able = [policy for policy in policies if not (policy.totals.count("failed") or policy.totals.count("overflows"))]
    figures = {measure.figure(policy.totals) for policy in able}
    if measure.better is None or len(figures) < 2:
        return []
    best = min(figures) if measure.better == "less" else max(figures)
    return [policy for policy in able if measure.figure(policy.totals) == best]
