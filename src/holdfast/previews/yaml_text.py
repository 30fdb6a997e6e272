"""Previews of YAML, without a parser: an outline by indentation, the values by key, and telling lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.previews.quoting import counted, evenly, lines_of, some_of, written
from holdfast.previews.room import Room, shortened
from holdfast.previews.shape_lines import value_lines
from holdfast.previews.shapes import Place
from holdfast.previews.telling import numbered, telling, with_rare_words

__all__ = ["preview_yaml"]

_ENTRY = re.compile(r"""( *)((?:- +)*)(?:("[^"]*"|'[^']*'|[^\s#"'{\[|>][^#]*?):(?: +(.*))?$|(-$|.+))""")
_BLOCK = re.compile(r"[|>][+-]?\d?\s*(?:#.*)?$")
_LONGEST_READ = 400
_LONGEST = 100
_ENOUGH = 0.5
_DEEPEST = 6
_OUTLINE, _VALUES = 0.4, 0.5
_MOST_KEYS = 24
_MOST_LINES = 30_000


@dataclass(eq=False)
class _Entry:
    """One key or list item: its line, how far it is indented, and how many entries stand directly below it."""

    number: int
    indent: int
    text: str
    key: str
    value: str
    depth: int = 0
    children: int = 0


def preview_yaml(text: str, room: Room) -> str | None:
    """Return an outline of the outer keys, values by key and telling lines, all with line numbers."""
    lines = lines_of(text)
    entries = list(_entries(lines, looked_at := _outer(lines)))
    if sum(bool(entry.key) for entry in entries) < _ENOUGH * len(entries) or not entries:
        return None
    _nest(entries)
    some = f" ({len(looked_at):,} of them looked at)" if len(looked_at) < len(written(lines)) else ""
    title = f"YAML, {counted(len(lines), 'line')}{some}"
    return with_rare_words(lambda part: _written(title, lines, entries, part), lines, room)


def _written(title: str, lines: Sequence[str], entries: Sequence[_Entry], room: Room) -> list[str]:
    documents = 1 + sum(line.startswith("---") for line in lines[1:])
    several = f", {documents:,} documents" if documents > 1 else ""
    said = room.take_all([f"{title}{several}; (n) is the number of entries below a line"])
    outline = _outline(entries, room)
    return [*said, *outline, *_values(entries, room), *telling(numbered(lines, written(lines)), room)]


def _outer(lines: Sequence[str]) -> list[int]:
    """Return the indices of the lines that are not blank; of very many, of those that are least indented."""
    indices = written(lines)
    if len(indices) <= _MOST_LINES:
        return indices
    indents = {index: len(lines[index]) - len(lines[index].lstrip(" ")) for index in some_of(indices)}
    deepest = sorted(indents.values())[_MOST_LINES]
    outer = [index for index, indent in indents.items() if indent < deepest] or list(indents)
    return [outer[at] for at in evenly(len(outer), _MOST_LINES)]


def _entries(lines: Sequence[str], indices: Iterable[int]) -> Iterator[_Entry]:
    block: int | None = None
    for index in indices:
        line = lines[index]
        indent = len(line) - len(line.lstrip(" "))
        if block is not None and indent > block:
            continue
        block = None
        if line.startswith(("#", "---", "..."), indent):
            continue
        if (entry := _entry(index + 1, line[:_LONGEST_READ].rstrip())) is None:
            continue
        if _BLOCK.match(entry.value):
            block = entry.indent
        yield entry


def _entry(number: int, line: str) -> _Entry | None:
    match = _ENTRY.match(line)
    if match is None or (not match[2] and not match[3]):
        return None
    return _Entry(number, len(match[1]), line.strip(), match[3] or "", match[4] or "")


def _nest(entries: Sequence[_Entry]) -> None:
    """Find for each entry how deep it stands. An item of a list may stand as far left as the key of the list."""
    open_entries: list[_Entry] = []
    for entry in entries:
        is_item = entry.text.startswith("-")
        while open_entries and not _is_below(entry, open_entries[-1], is_item):
            open_entries.pop()
        entry.depth = len(open_entries)
        if open_entries:
            open_entries[-1].children += 1
        open_entries.append(entry)


def _is_below(entry: _Entry, above: _Entry, is_item: bool) -> bool:
    level = entry.indent == above.indent and is_item and not above.text.startswith("-") and not above.value
    return entry.indent > above.indent or level


def _outline(entries: Sequence[_Entry], room: Room) -> list[str]:
    """Take the outermost levels: each as a whole as long as it fits, then some of the next one."""
    levels = [[entry for entry in entries if entry.depth == depth] for depth in range(_DEEPEST)]
    kept: list[_Entry] = []
    missing = 0
    part = room.part(_OUTLINE)
    for level in levels:
        chosen = [] if missing else _fitting(level, part)
        kept.extend(chosen)
        missing = missing or len(level) - len(chosen)
    lines = room.take_all(_line(entry) for entry in sorted(kept, key=lambda entry: entry.number))
    note = f"… {missing:,} more at the innermost level shown …"
    return [*lines, *room.take_all([note])] if missing else lines


def _fitting(level: Sequence[_Entry], room: Room) -> list[_Entry]:
    some = [room.cost(_line(level[index])) for index in evenly(len(level), 40)]
    wanted = int(room.left * len(some) / max(sum(some), 1))
    return [level[index] for index in evenly(len(level), wanted) if room.take(_line(level[index]))]


def _line(entry: _Entry) -> str:
    below = f" ({entry.children:,})" if entry.children else ""
    return f"{entry.number}: {' ' * entry.depth}{shortened(entry.text, _LONGEST)}{below}"


def _values(entries: Sequence[_Entry], room: Room) -> list[str]:
    """Take the distinct values of the keys that occur most often, wherever they stand."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        if entry.key and entry.value:
            found.setdefault(entry.key.strip("\"'"), []).append(entry.value)
    frequent = Counter({key: len(values) for key, values in found.items() if len(values) > 2}).most_common(_MOST_KEYS)
    places = [Place(f"{key} ×{count}", found[key], count) for key, count in frequent]
    if not places or not room.take("values by key:"):
        return []
    return ["values by key:", *room.within(_VALUES, lambda part: value_lines(places, part))]
