"""How JSON paths are written: a part of RFC 9535, read by hand so that every error shows its place."""

from __future__ import annotations

from holdfast.selection.expressions import Cursor
from holdfast.selection.json_filters import NAME, filter_in, integer_in, string_in
from holdfast.selection.json_selectors import Segment, Selector, by_index, by_key, by_slice, every_part, where

__all__ = ["parse_path"]


def parse_path(path: str) -> tuple[Segment, ...]:
    """Return the steps of a path. The ``$`` in front may be left out."""
    cursor = Cursor(path, what="json_path")
    cursor.skip_space()
    segments = [] if cursor.accept("$") or cursor.text.startswith((".", "["), cursor.position) else [_bare(cursor)]
    while not _is_over(cursor):
        segments.append(_segment(cursor))
    return tuple(segments)


def _is_over(cursor: Cursor) -> bool:
    cursor.skip_space()
    return cursor.at_end


def _bare(cursor: Cursor) -> Segment:
    start = cursor.position
    return _made(cursor, start, False, _shorthand(cursor, "a path such as $.key, $[0] or $..key"))


def _segment(cursor: Cursor) -> Segment:
    start = cursor.position
    if cursor.accept("["):
        return _made(cursor, start, False, _bracketed(cursor))
    descendants = cursor.accept("..")
    if not descendants:
        cursor.expect(".", "'.', '..' or '['")
    if descendants and cursor.accept("["):
        return _made(cursor, start, True, _bracketed(cursor))
    return _made(cursor, start, descendants, _shorthand(cursor, "a key or '*'"))


def _made(cursor: Cursor, start: int, descendants: bool, chosen: tuple[list[Selector], str | None]) -> Segment:
    selectors, name = chosen
    text = cursor.text[start : cursor.position].strip()
    return Segment(tuple(selectors), descendants, text, cursor.position, name)


def _shorthand(cursor: Cursor, expected: str) -> tuple[list[Selector], str | None]:
    if cursor.accept("*"):
        return [every_part], None
    name = cursor.take(NAME) or cursor.fail(expected)
    return [by_key(name)], name


def _bracketed(cursor: Cursor) -> tuple[list[Selector], str | None]:
    chosen = [_selector(cursor)]
    cursor.skip_space()
    while cursor.accept(","):
        chosen.append(_selector(cursor))
        cursor.skip_space()
    cursor.expect("]", "',' or ']'")
    return [selector for selector, _ in chosen], chosen[0][1] if len(chosen) == 1 else None


def _selector(cursor: Cursor) -> tuple[Selector, str | None]:
    cursor.skip_space()
    if (name := string_in(cursor)) is not None:
        return by_key(name), name
    if cursor.accept("*"):
        return every_part, None
    if cursor.accept("?"):
        return where(filter_in(cursor)), None
    return _index_or_slice(cursor), None


def _index_or_slice(cursor: Cursor) -> Selector:
    start = integer_in(cursor)
    if not cursor.accept(":"):
        if start is None:
            cursor.fail("a key in quotes, an index, a slice such as 0:10, '*' or a filter such as ?@.price < 10")
        return by_index(start)
    stop = integer_in(cursor)
    return by_slice(start, stop, integer_in(cursor) if cursor.accept(":") else None)
