"""Previews of HTML and XML: title, headings, counts, and the text that a reader would see."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from holdfast.previews.large_pages import read_page
from holdfast.previews.markup import Page
from holdfast.previews.quoting import counted, evenly, lines_of
from holdfast.previews.room import Room, shortened
from holdfast.previews.telling import spread, telling, with_rare_words

__all__ = ["preview_html"]

_LONGEST = 160
_MOST_LINES = 5_000
_HEADING_SHARE, _HEAD = 0.35, 0.2
_COUNTED = ("a", "img", "table", "form", "li", "script")


def preview_html(text: str, room: Room) -> str | None:
    """Return title, headings, how many links and such there are, and of the text the beginning and telling lines."""
    page = read_page(text)
    if not page.tags:
        return None
    lines = lines_of(text)
    seen = [line for line in page.lines or _some_lines(lines) if len(line[1]) > 2]
    return with_rare_words(lambda part: _written(page, seen, len(lines), part), _as_lines(seen, len(lines)), room)


def _written(page: Page, seen: Sequence[tuple[int, str]], lines: int, room: Room) -> list[str]:
    title = room.take_all(
        [_counts(page, lines), *([f"title: {shortened(page.title, _LONGEST)}"] if page.title else [])]
    )
    headings = _headings(page, room)
    head = room.take_head([f"{number}: {shortened(line, _LONGEST)}" for number, line in seen], _HEAD)
    rest = "from the rest of the text:"
    told = telling([(str(number), line) for number, line in seen[len(head) :]], room) if room.take(rest) else []
    return [*title, *headings, *head, *([rest, *told] if told else [])]


def _some_lines(lines: Sequence[str]) -> list[tuple[int, str]]:
    return [(index + 1, lines[index]) for index in evenly(len(lines), _MOST_LINES)]


def _as_lines(seen: Sequence[tuple[int, str]], count: int) -> list[str]:
    """Return the lines of the content with nothing on them but the text that is seen."""
    lines = [""] * count
    for number, line in seen:
        lines[number - 1] += f" {line}"
    return lines


def _counts(page: Page, lines: int) -> str:
    known = [f"{page.tags[name]:,} <{name}>" for name in _COUNTED if page.tags[name]]
    common = [f"{count:,} <{name}>" for name, count in page.tags.most_common(8)]
    comments = f", comments of {page.comments:,} characters" if page.comments else ""
    size = counted(sum(len(line) for _, line in page.lines), "character")
    if page.looked_at < 1:
        part = f"text from {max(page.looked_at, 0.001):.1%} of the page, from all over it"
        return f"{', '.join(known or common)}; {counted(lines, 'line')}; {part}"
    return f"{', '.join(known or common)}{comments}; text of {size} in {counted(lines, 'line')}"


def _headings(page: Page, room: Room) -> list[str]:
    """Take the headings, from everywhere if there is no room for all."""
    lines = [f"{number}: {'#' * level} {shortened(heading, 80)}" for number, level, heading in page.headings]
    taken = room.within(_HEADING_SHARE, lambda part: _some(lines, part))
    missing = page.heading_count - len(taken)
    return [*taken, *room.take_all([f"… {counted(missing, 'heading')} left out …"])] if missing else taken


def _some(lines: Sequence[str], room: Room) -> list[str]:
    taken = len(room.take_all(lines[index] for index in spread(len(lines))))
    return [lines[index] for index in sorted(islice(spread(len(lines)), taken))]
