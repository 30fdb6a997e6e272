"""Markdown: the headings as an outline, and how each part begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.previews.groups import scattered
from holdfast.previews.plain import sampled_quotes
from holdfast.previews.quoting import counted, evenly, lines_of, quoted
from holdfast.previews.rare_words import rare_words
from holdfast.previews.room import Room, shortened

__all__ = ["preview_markdown"]

_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.{1,1000})")
_HTML_HEADING = re.compile(r"\s*<h([1-6])\b[^>]{0,300}>(.{0,1000})", re.IGNORECASE)
_UNDERLINE = re.compile(r"(=|-)\1{2,}\s*$")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_CLOSING = re.compile(r"\s+#*\s*$")
_MARKS, _MOST_MARKED = "#<=-`~ \t", 200_000
_CONTENTS = re.compile(r"\s*(?:[-*+]|\d+\.) \[.{0,300}\]\(#.{0,300}\)\s*$")
_TAG = re.compile(r"<[^<>]{1,300}>")
_LONGEST_HEADING, _LONGEST_LEAD = 100, 300
_LEAD, _OUTLINE, _WORDS = 0.2, 0.5, 0.6


@dataclass(frozen=True)
class _Heading:
    index: int
    level: int
    title: str

    def told(self) -> str:
        return f"{self.index + 1}: {'#' * self.level} {shortened(self.title, _LONGEST_HEADING)}"


def preview_markdown(text: str, room: Room) -> str | None:
    """Return the outline with line numbers, the lead, and lines from everywhere; None if there is no heading."""
    lines = lines_of(text)
    headings = _headings(lines)
    if not headings:
        return None
    said = room.take_all([f"{counted(len(lines), 'line')}, {_counted(headings, lines)}"])
    lead = room.within(_LEAD, lambda part: part.take_all(_lead(lines)))
    outline = _outline(headings, room)
    between = "lines from all of it:"
    room.left -= room.cost(between)
    skipped = {heading.index for heading in headings}
    words = rare_words(lines, room, _WORDS, [*lead, *outline])
    body = range(len(lead), len(lines))
    quotes = sampled_quotes(lines, body, room, tells=lambda index: index not in skipped and _tells(lines[index]))
    return "\n".join([*said, *lead, *outline, *([between, *quotes] if quotes else []), *words])


def _counted(headings: Sequence[_Heading], lines: Sequence[str]) -> str:
    some = len(lines) > _MOST_MARKED < len(_marked(lines))
    return f"{'at least ' if some else ''}{counted(len(headings), 'heading')}"


def _marked(lines: Sequence[str]) -> list[int]:
    return [index for index, line in enumerate(lines) if line[:1] in _MARKS and line]


def _headings(lines: Sequence[str]) -> list[_Heading]:
    marked = _marked(lines)
    found: list[_Heading] = []
    fenced = False
    for index in (marked[at] for at in evenly(len(marked), _MOST_MARKED)):
        if _FENCE.match(lines[index]):
            fenced = not fenced
        elif not fenced and (heading := _heading(lines, index)):
            found.append(heading)
    return found


def _heading(lines: Sequence[str], index: int) -> _Heading | None:
    line = lines[index][:2_000]
    if marked := _HEADING.match(line):
        return _Heading(index, len(marked[1]), _bare(_CLOSING.sub("", marked[2])))
    if tagged := _HTML_HEADING.match(line):
        return _Heading(index, int(tagged[1]), _bare(tagged[2]) or _bare(" ".join(lines[index + 1 : index + 2])[:200]))
    under = _UNDERLINE.match(line)
    return _underlined(lines, index - 1, 1 if under[1] == "=" else 2) if under and index > 1 else None


def _underlined(lines: Sequence[str], index: int, level: int) -> _Heading | None:
    line = lines[index][:2_000]
    is_title = line.strip() and not line.startswith((" ", "-", "|", ">")) and not lines[index - 1].strip()
    return _Heading(index, level, _bare(line.strip())) if is_title else None


def _bare(title: str) -> str:
    return _TAG.sub("", title).strip()


def _lead(lines: Sequence[str]) -> list[str]:
    """Return the first lines, without a table of contents: the outline is one."""
    return [quoted(index + 1, line, _LONGEST_LEAD) for index, line in enumerate(lines[:400]) if _tells(line)][:40]


def _tells(line: str) -> bool:
    return bool(line.strip()) and _CONTENTS.match(line) is None


def _outline(headings: Sequence[_Heading], room: Room) -> list[str]:
    """Return the headings, the higher levels first where not all fit, in the order of the text."""
    by_level = [headings[place] for place in scattered(len(headings))]
    by_level.sort(key=lambda heading: heading.level)
    part = room.part(_OUTLINE)
    taken = len(part.take_all(heading.told() for heading in by_level))
    kept = sorted(by_level[:taken], key=lambda heading: heading.index)
    said = [heading.told() for heading in kept]
    if taken < len(headings):
        said.append(f"… {counted(len(headings) - taken, 'more heading')}")
    return room.take_all(["headings:", *said])
