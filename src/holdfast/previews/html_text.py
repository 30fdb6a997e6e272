"""Previews of HTML and XML: title, headings, counts, and the text that a reader would see."""

from __future__ import annotations

from holdfast.previews.markup import Page, read_markup
from holdfast.previews.quoting import counted, lines_of
from holdfast.previews.room import Room, shortened
from holdfast.previews.telling import joined, telling

__all__ = ["preview_html"]

_LONGEST = 160
_HEADING_SHARE, _HEAD = 0.35, 0.2
_COUNTED = ("a", "img", "table", "form", "li", "script")


def preview_html(text: str, room: Room) -> str | None:
    """Return title, headings, how many links and such there are, and of the text the beginning and telling lines."""
    page = read_markup(text)
    if not page.tags:
        return None
    tokens = room.left
    title = room.take_all(
        [f"{_counts(page, text)}", *([f"title: {shortened(page.title, _LONGEST)}"] if page.title else [])]
    )
    headings = _headings(page, room)
    seen = [line for line in page.lines or enumerate(lines_of(text), start=1) if len(line[1]) > 2]
    head = room.take_head([f"{number}: {shortened(line, _LONGEST)}" for number, line in seen], _HEAD)
    told = telling([(str(number), line) for number, line in seen[len(head) :]], room)
    return joined([*title, *headings, *head, *(["from the rest of the text:"] if told else []), *told], tokens, room)


def _counts(page: Page, text: str) -> str:
    known = [f"{page.tags[name]:,} <{name}>" for name in _COUNTED if page.tags[name]]
    common = [f"{count:,} <{name}>" for name, count in page.tags.most_common(8)]
    comments = f", comments of {page.comments:,} characters" if page.comments else ""
    size = counted(sum(len(line) for _, line in page.lines), "character")
    return f"{', '.join(known or common)}{comments}; text of {size} in {counted(text.count(chr(10)) + 1, 'line')}"


def _headings(page: Page, room: Room) -> list[str]:
    lines = [f"{number}: {'#' * level} {shortened(heading, 80)}" for number, level, heading in page.headings]
    taken = room.take_head(lines, _HEADING_SHARE)
    missing = len(lines) - len(taken)
    return [*taken, *room.take_all([f"… {counted(missing, 'heading')} left out …"])] if missing else taken
