"""The largest items, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.replay.page.figures import amount, counted, exact, percent
from holdfast.replay.page.markup import Markup, element, join, name
from holdfast.replay.page.report import Item, Policy, Report, Unread

__all__ = ["largest_items", "unread_files"]

_AT_FIRST, _MOST_UNREAD = 12, 100
_UNREAD = ("file", "line", "why")


def largest_items(report: Report) -> Markup:
    """Return the largest messages, and what each policy left of them in the window."""
    first, rest = report.largest[:_AT_FIRST], report.largest[_AT_FIRST:]
    if not first:
        return element("p", "There are none.", class_="lead")
    more = element("details", element("summary", f"{counted(len(rest), 'more item')}"), _items(rest, report.policies))
    return join(_items(first, report.policies), more if rest else None)


def unread_files(unread: Sequence[Unread]) -> Markup:
    """Return the files and lines that could not be read, and why."""
    rows = [_unread(each) for each in unread[:_MOST_UNREAD]]
    heads = [element("th", each, scope="col", class_="number" if each == "line" else None) for each in _UNREAD]
    table = element("table", element("thead", element("tr", *heads)), element("tbody", *rows), class_="list")
    beyond = len(unread) - len(rows)
    note = element("p", f"And {exact(beyond)} more; all of them are in --json.", class_="lead") if beyond else None
    return join(_scroll(table, "Unreadable files"), note)


def _items(items: Sequence[Item], policies: Sequence[Policy]) -> Markup:
    names = [element("th", name(policy.name, 40), scope="col", class_="number") for policy in policies]
    left = element("th", "left in the window under", scope="colgroup", colspan=len(policies), class_="number")
    what = element("th", "what", scope="col", rowspan=2)
    tokens = element("th", "tokens", scope="col", rowspan=2, class_="number")
    head = element("thead", element("tr", what, tokens, left), element("tr", *names))
    table = element("table", head, element("tbody", *map(_item, items)), class_="list")
    return _scroll(table, "Largest items")


def _item(item: Item) -> Markup:
    place = element("small", name(item.kind, 24), f", message {exact(item.message)} of ", name(item.recording, 48))
    return element(
        "tr",
        element("th", name(item.what, 80), " ", place, scope="row"),
        element("td", amount(item.tokens), class_="number"),
        *(_left(tokens, item.tokens) for tokens in item.left),
    )


def _left(tokens: int | None, whole: int) -> Markup:
    if tokens is None:
        return element("td", "–", class_="number")
    share = min(100.0, 100 * tokens / whole) if whole > 0 else 0
    rect = element("rect", width=f"{share:.1f}%", height="100%", class_="fill left")
    bar = element("svg", rect, class_="share", aria_hidden="true")
    return element(
        "td", amount(tokens), bar, class_="number", title=f"{exact(tokens)} tokens, {percent(tokens, whole)}"
    )


def _unread(each: Unread) -> Markup:
    line = "" if each.line is None else exact(each.line)
    return element(
        "tr",
        element("th", name(each.file, 80), scope="row"),
        element("td", line, class_="number"),
        element("td", name(each.reason, 200)),
    )


def _scroll(table: Markup, label: str) -> Markup:
    return element("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)
