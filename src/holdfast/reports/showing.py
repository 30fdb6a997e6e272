"""A report as a table for people: a bar of the window, the items, and what left."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import accumulate, groupby
from textwrap import wrap
from typing import TYPE_CHECKING

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.ledger.lines import cells_of, fitted, one_line, table

if TYPE_CHECKING:
    from holdfast.reports.values import ContextReport, Departure, Item

    _Row = tuple[str, ...]

__all__ = ["checked_width", "shown"]

_NARROWEST, _WIDEST = 60, 200
_WIDE_ENOUGH_FOR_SHARES = 80
_TOO_SHORT_TO_SKIP = 2
_SHORT_ENOUGH, _LARGEST, _LATEST, _TOOLS = 30, 10, 10, 6
_SECTIONS = {
    "S": "system",
    "T": "tools",
    "U": "user",
    "A": "assistant",
    "R": "tool results",
    "M": "summaries and markers",
}
_FREE, _ANSWER = ".", "-"
_BY_KIND = {
    "system": "S",
    "tool": "T",
    "summary": "M",
    "marker": "M",
    "bridge": "M",
    "tool result": "R",
    "extract": "R",
}
_HEAD = ("#", "role", "kind", "tokens", "share", "stays", "what")
_SHARE = _HEAD.index("share")


def checked_width(width: object) -> int:
    """Return a width that tables can have; refuse others."""
    if not isinstance(width, int) or isinstance(width, bool):
        raise InvalidTypeError(f"width must be a whole number of columns, got {type(width).__name__}")
    if not _NARROWEST <= width <= _WIDEST:
        raise InvalidValueError(f"width must be from {_NARROWEST} to {_WIDEST} columns, and is not")
    return width


def shown(report: ContextReport, *, all: bool, width: int) -> str:
    """Return the whole report, each line at most *width* columns wide."""
    parts = [
        _window(report, width),
        _items(report.items, all, width),
        _tools(report, width),
        _left(report, all, width),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _window(report: ContextReport, width: int) -> list[str]:
    answer = report.window - report.limit
    lines = [f"Context: {report.used:,} of {report.window:,} tokens are used ({_share(report.used / report.window)})"]
    if answer:
        lines[0] += f"; {answer:,} are kept for the answer"
    if report.used > report.limit:
        lines.append(f"This is {report.used - report.limit:,} tokens more than fit.")
    if report.used != report.estimated:
        lines.append("What each item takes is estimated, and scaled to what the provider counts in all.")
    return [*_wrapped(lines, width), _bar(report, width - 2), *_legend(report, width)]


def _wrapped(lines: Iterable[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(line, width)]


def _tokens_by_section(report: ContextReport) -> dict[str, int]:
    tokens = dict.fromkeys(_SECTIONS, 0)
    for item in report.items:
        tokens[_section(item)] += item.tokens
    return tokens


def _section(item: Item) -> str:
    return _BY_KIND.get(item.kind) or ("A" if item.role == "assistant" else "U")


def _bar(report: ContextReport, cells: int) -> str:
    parts = dict(_tokens_by_section(report))
    parts[_FREE] = max(report.limit - report.used, 0)
    parts[_ANSWER] = max(report.window - max(report.used, report.limit), 0)
    whole = sum(parts.values()) or 1
    ends = [round(reached * cells / whole) for reached in accumulate(parts.values(), initial=0)]
    filled = (sign * (stop - start) for sign, start, stop in zip(parts, ends, ends[1:], strict=False))
    return f"[{''.join(filled)}]"


def _legend(report: ContextReport, width: int) -> list[str]:
    tokens = _tokens_by_section(report)
    parts = [f"{sign} {name} {tokens[sign]:,}" for sign, name in _SECTIONS.items() if tokens[sign]]
    parts.append(f"{_FREE} free {max(report.limit - report.used, 0):,}")
    return _joined([*parts, *([f"{_ANSWER} answer"] if report.limit < report.window else [])], width)


def _joined(parts: Iterable[str], width: int) -> list[str]:
    """Return parts side by side, on as many lines as they need."""
    lines: list[str] = []
    for part in (fitted(part, width) for part in parts):
        if lines and cells_of(lines[-1]) + cells_of(part) + 3 <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return lines


def _items(items: Sequence[Item], all: bool, width: int) -> list[str]:
    if not items:
        return ["There is nothing in it."]
    shown = [(_HEAD, ()), *_rows(items, _chosen(items, all), width)]
    lines = zip(_lines(shown, width), shown, strict=True)
    return [part for line, (_, references) in lines for part in (line, *_where(references, width))]


def _lines(shown: Iterable[tuple[_Row, Sequence[str]]], width: int) -> list[str]:
    rows = [row for row, _ in shown]
    if width >= _WIDE_ENOUGH_FOR_SHARES:
        return table(rows, right=(0, 3, _SHARE), width=width)
    return table([(*row[:_SHARE], *row[_SHARE + 1 :]) for row in rows], right=(0, 3), width=width)


def _rows(items: Sequence[Item], chosen: Collection[int], width: int) -> Iterator[tuple[_Row, Sequence[str]]]:
    """Yield a row for each item that is shown, with its references, and one for each run of others."""
    for is_chosen, run in groupby(range(len(items)), key=lambda at: at in chosen):
        some = [items[at] for at in run]
        if is_chosen or len(some) <= _TOO_SHORT_TO_SKIP:
            yield from ((_row(item, width), item.references) for item in some)
        else:
            yield _gap(some), ()


def _chosen(items: Sequence[Item], all: bool) -> Collection[int]:
    everything = range(len(items))
    if all or len(items) <= _SHORT_ENOUGH:
        return everything
    return {*nlargest(_LARGEST, everything, key=lambda at: items[at].tokens), *everything[-_LATEST:]}


def _row(item: Item, width: int) -> _Row:
    stays = "pinned" if item.pinned else "yes" if item.protected else ""
    what = one_line(item.what, width)
    number = "" if item.number is None else f"{item.number:,}"
    return number, item.role, item.kind, f"{item.tokens:,}", _share(item.share), stays, what


def _share(share: float) -> str:
    return f"{share:.1%}"


def _gap(items: Sequence[Item]) -> _Row:
    tokens, share = sum(item.tokens for item in items), sum(item.share for item in items)
    return "…", "", "", f"{tokens:,}", _share(share), "", f"({len(items):,} not shown: report.table(all=True))"


def _where(references: Sequence[str], width: int) -> Iterator[str]:
    """Yield the first reference on a line of its own, where it is least likely to be cut."""
    if references:
        yield _reference("→", references[0], width)
    if len(references) > 1:
        yield f"    and {len(references) - 1:,} more"


def _reference(mark: str, reference: str, width: int) -> str:
    return fitted(f"    {mark} {one_line(reference, width)}", width)


def _tools(report: ContextReport, width: int) -> list[str]:
    if not report.by_tool:
        return []
    named = [f"{one_line(tool, 40)} {total.tokens:,}" for tool, total in list(report.by_tool.items())[:_TOOLS]]
    others = list(report.by_tool.values())[_TOOLS:]
    more = [f"{len(others)} more {sum(total.tokens for total in others):,}"] if others else []
    return ["Calls and results by tool:", *_joined([*named, *more], width)]


def _left(report: ContextReport, all: bool, width: int) -> list[str]:
    if not report.left and not report.forgotten:
        return ["All there was is in view: nothing was taken out."]
    if not report.left:
        older = (
            f"The ledger no longer holds {report.forgotten:,} older records, and the others tell of nothing that left."
        )
        return _wrapped([older], width)
    shown = report.left if all else report.left[-_LATEST:]
    hidden = report.left[: len(report.left) - len(shown)]
    steps = f"{len(report.left):,} step{'' if len(report.left) == 1 else 's'}"
    head = [f"No longer in view: {sum(left.tokens for left in report.left):,} tokens, taken out in {steps}"]
    if report.forgotten:
        head.append(f"(the ledger no longer holds {report.forgotten:,} older records)")
    if hidden:
        head.append(f"({len(hidden):,} earlier ones not shown, {sum(left.tokens for left in hidden):,} tokens)")
    return [*_wrapped(head, width), *_left_lines(shown, width)]


def _left_lines(shown: Sequence[Departure], width: int) -> Iterator[str]:
    rows = [(f"turn {left.turn:,}", left.kind, f"{left.tokens:,}", one_line(left.what, width)) for left in shown]
    for left, line in zip(shown, table(rows, right=(0, 2), width=width), strict=True):
        yield line
        yield from (_reference("→", reference, width) for reference in left.references)
        yield from (_reference("evicted:", reference, width) for reference in left.evicted)
        if left.more_references:
            yield f"    and {left.more_references:,} more"
