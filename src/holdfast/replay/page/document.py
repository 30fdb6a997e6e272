"""The whole page: its head, its sections from the verdict down, its style and its script."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from holdfast.replay.page.bars import bill_bars, value_bars
from holdfast.replay.page.comparison import comparison
from holdfast.replay.page.explanations import how_to_read
from holdfast.replay.page.figures import counted, dollars, exact
from holdfast.replay.page.island import Shown, data_of, json_island, shown_recordings
from holdfast.replay.page.markup import Child, Markup, cut, element, name
from holdfast.replay.page.pictures import pictures
from holdfast.replay.page.report import Report, read_report
from holdfast.replay.page.tables import largest_items, unread_files
from holdfast.replay.page.verdicts import verdicts

__all__ = ["page_of"]

_HATCH = Markup(
    '<svg class="defs" width="0" height="0" aria-hidden="true"><defs><pattern id="hatch" width="6" height="6" '
    'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="stripe" y2="6"/></pattern></defs></svg>'
)

_TABLE_LEAD = (
    "◆ marks the best figure of a row, among the policies that bring every recording to its end within the window. "
    "Open the name of a row to read what it means."
)
_UNREAD_LEAD = "These files and lines are in none of the figures above."
_VALUES_LEAD = "Values that an agent used again in a call, and where they stood at that moment."


def page_of(report: Mapping[str, Any]) -> str:
    """Return the whole HTML page for *report*, which is as `holdfast replay --json` writes it. Nothing in it is run."""
    read = read_report(report)
    shown = shown_recordings(read)
    data = element("script", Markup(json_island(data_of(read, shown))), type="application/json", id="data")
    script = element("script", Markup(_asset("page.js")))
    body = element("body", _HATCH, element("main", *_sections(read, shown)), data, script)
    return f"<!DOCTYPE html>\n{element('html', _head(read), body, lang='en')}\n"


def _head(report: Report) -> Markup:
    policy = (
        f"default-src 'none'; style-src {_hash_of('page.css')}; script-src {_hash_of('page.js')}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", cut(report.title, 100)),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(_asset("page.css"))),
    )


@cache
def _asset(file: str) -> str:
    return files("holdfast.replay.page").joinpath(file).read_text(encoding="utf-8")


def _hash_of(file: str) -> str:
    return f"'sha256-{b64encode(sha256(_asset(file).encode()).digest()).decode()}'"


def _sections(report: Report, shown: Sequence[Shown]) -> Iterator[Markup]:
    yield _header(report)
    if report.policies:
        yield element("section", element("h2", "Verdicts", class_="spoken"), verdicts(report), class_="first")
        yield _section("Side by side", comparison(report), lead=_TABLE_LEAD)
        yield _section("Context over time", *pictures(report, shown))
        yield _section("The bill", bill_bars(report), lead=_prices(report))
        yield _section("Where values were", value_bars(report), lead=_VALUES_LEAD)
        yield _section("Largest items", largest_items(report))
    if report.unread:
        yield _section("What could not be read", unread_files(report.unread), lead=_UNREAD_LEAD)
    yield _section("How to read this", how_to_read(report))


def _header(report: Report) -> Markup:
    toggle = element("button", "Dark", type="button", id="theme", hidden=True)
    facts = element("p", *_facts(report), class_="facts")
    return element("header", element("h1", name(report.title, 100)), toggle, facts)


def _facts(report: Report) -> Iterator[Markup]:
    requests = max((policy.totals.count("requests") for policy in report.policies), default=0)
    facts = [
        counted(len(report.recordings), "recording"),
        counted(requests, "request"),
        f"window of {exact(report.window)} tokens",
        f"unmanaged, {counted(report.unmanaged.count('overflows'), 'request')} above it",
        "tokens estimated" if report.tokens == "estimated" else f"tokens counted with {cut(report.tokens, 40)}",
        f"priced as {_priced(report)}" if report.prices else "",
        f"made {cut(report.made, 40)} with holdfast {cut(report.version, 40)}",
    ]
    return (element("span", fact) for fact in facts if fact)


def _priced(report: Report) -> str:
    model, as_of = (cut(str(report.prices.get(key) or ""), 60) for key in ("name", "as_of"))
    return f"{model or 'a model'}, {as_of}" if as_of else model or "a model"


def _prices(report: Report) -> str:
    kinds = (("input", "new"), ("cache_read", "read from the cache"), ("cache_write", "written to the cache"))
    priced = [(report.price(key), says) for key, says in kinds]
    told = ", ".join(f"{dollars(price)} {says}" for price, says in priced if price is not None)
    return f"A million tokens, priced as {_priced(report)}: {told}." if told else ""


def _section(title: str, *children: Child, lead: str = "") -> Markup:
    return element("section", element("h2", title), element("p", lead, class_="lead") if lead else None, *children)
