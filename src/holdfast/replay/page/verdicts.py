"""One card for each policy: what it would have saved, and what it would have hurt."""

from __future__ import annotations

from holdfast.replay.page.bars import paid_bar, values_bar
from holdfast.replay.page.figures import change, counted, dollars, exact, money, percent, short
from holdfast.replay.page.markup import Child, Markup, cut, element, join, name
from holdfast.replay.page.report import Policy, Report, Totals

__all__ = ["verdicts"]

_GOOD, _BAD, _EVEN = "good", "bad", "even"
_SIGNS = {_GOOD: "✓", _BAD: "✕", _EVEN: "•"}
_UNPAID = "nothing more is sent or paid from there on"
# From here on, a factor says more than a percentage.
_MANY_TIMES = 10
_SPOKEN = {_GOOD: "good: ", _BAD: "bad: ", _EVEN: ""}


def verdicts(report: Report) -> Markup:
    """Return the cards side by side, in the order of the policies."""
    cards = [_card(policy, report, place) for place, policy in enumerate(report.policies)]
    return element("div", *cards, class_="cards")


def _card(policy: Policy, report: Report, place: int) -> Markup:
    alone, is_baseline = len(report.policies) == 1, place == report.baseline
    base = None if is_baseline else report.policies[report.baseline]
    tag = element("span", "measured against", class_="tag") if is_baseline and not alone else None
    return element(
        "article",
        element("h3", name(policy.name, 60), tag),
        _headline(policy.totals, base),
        element("ul", *_lines(policy.totals, base), class_="lines"),
        element("div", *_minis(policy.totals, report), class_="minis"),
        _options(policy.options),
        class_="card base" if is_baseline and not alone else "card",
    )


def _options(options: str) -> Markup:
    if not options:
        return element("p", "without a manager", class_="unmanaged")
    return element("details", element("summary", "options"), element("code", cut(options, 1_000)))


def _minis(totals: Totals, report: Report) -> list[Markup]:
    bars = (("bill", paid_bar(totals, report)), ("values", values_bar(totals)))
    return [element("p", element("small", says), bar) for says, bar in bars if bar]


def _headline(totals: Totals, base: Policy | None) -> Markup:
    if failed := totals.count("failed"):
        # A run that ended early is no bargain.
        return _big(exact(failed), f"{'recording' if failed == 1 else 'recordings'} ended early", _BAD, _UNPAID)
    if base is None:
        return _big(money(totals.to_pay), "to pay", "", f"with prompt caching{_if_taken(totals)}")
    now, before = totals.to_pay, base.totals.to_pay
    against = join(money(now), " instead of ", money(before), _if_taken(base.totals))
    if before <= 0 or dollars(now) == dollars(before):
        return _big("as much", "to pay", _EVEN, against)
    if now >= _MANY_TIMES * before:
        return _big(f"{exact(now / before)} times", "as much to pay", _BAD, against)
    share, _, direction = change(now, before).rpartition(" ")
    return _big(share, f"{direction} to pay", _GOOD if now < before else _BAD, against)


def _if_taken(totals: Totals) -> str:
    return ", if no request were refused" if totals.count("overflows") else ""


def _big(figure: Child, unit: str, kind: str, below: Child) -> Markup:
    arrow = {_GOOD: "↓", _BAD: "↑"}.get(kind)
    sign = element("span", arrow, class_="arrow", aria_hidden="true") if arrow else None
    line = element(
        "p", sign, element("b", figure), " ", element("span", unit, class_="unit"), class_=f"big {kind}".strip()
    )
    return join(line, element("p", below, class_="against"))


def _lines(totals: Totals, base: Policy | None) -> list[Markup]:
    return [_overflows(totals, base), _values(totals)]


def _overflows(totals: Totals, base: Policy | None) -> Markup:
    above, requests = totals.count("overflows"), totals.count("requests")
    told: Markup = join(f"{exact(above)} of {counted(requests, 'request')} above the window")
    if base and (before := base.totals.count("overflows")) != above:
        told = join(told, " (", name(base.name, 24), f": {exact(before)})")
    is_good = requests and not totals.count("failed")
    return _line(_BAD if above else _GOOD if is_good else _EVEN, told)


def _values(totals: Totals) -> Markup:
    values, lost = totals.values, totals.count("values", "lost")
    if not values:
        return _line(_EVEN, "no values to ask about")
    told = f"{percent(values - lost, values)} of {counted(values, 'value')} at hand"
    if not lost:
        return _line(_EVEN, told + _if_taken(totals)) if totals.count("overflows") else _line(_GOOD, told)
    back = totals.count("further")
    brings = f"; more look-ups bring {'all of them' if back >= lost else short(back)} back" if back else ""
    return _line(_EVEN if back >= lost else _BAD, f"{told}, {short(lost)} lost{brings}")


def _line(kind: str, told: Child) -> Markup:
    sign = element("span", _SIGNS[kind], class_=f"sign {kind}", aria_hidden="true")
    spoken = element("span", _SPOKEN[kind], class_="spoken") if _SPOKEN[kind] else None
    return element("li", sign, element("span", spoken, told))
