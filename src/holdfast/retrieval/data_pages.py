"""What a path selects in JSON, and rows of tables, as many as fit into an answer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from holdfast.errors import InvalidValueError
from holdfast.extracts import extract
from holdfast.gentle_json import dumps_readable, loads_in_steps
from holdfast.messages import as_json_text
from holdfast.retrieval.contents import WORKERS, StoredContent, StoredContents, decoded
from holdfast.retrieval.pages import fitting, go_on_with
from holdfast.retrieval.requests import Request
from holdfast.retrieval.room import Room, shortened
from holdfast.selection import Row, Table, compile_path, select_rows

__all__ = ["path_page", "rows_page"]

_MOST_MATCHES, _MOST_CELLS = 1_000, 1_000_000
_SHARE_OF_HEADER = 0.4
_CHARACTERS_PER_TOKEN = 16


async def path_page(contents: StoredContents, opened: StoredContent, request: Request, room: Room) -> str:
    """Return what the request's path selects, each with its own path."""
    content = await contents.whole(opened)
    return await WORKERS.run(_path_page, content, request, room)


async def rows_page(contents: StoredContents, opened: StoredContent, request: Request, room: Room) -> str:
    """Return the rows that the request asks for, with the lines that they begin in."""
    content = await contents.whole(opened)
    return await WORKERS.run(_rows_page, content, opened.content_type, request, room)


def _path_page(content: bytes, request: Request, room: Room) -> str:
    assert request.json_path is not None
    path = compile_path(request.json_path)
    value = _json_in(decoded(content))
    selection = path.select(value, limit=request.offset + _MOST_MATCHES)
    if not selection.matches:
        return fitting(f"[Nothing is selected. {path.explain(value)}]", room)
    matches = selection.matches[request.offset :]
    if not matches:
        raise InvalidValueError(
            f"offset must be below {selection.total:,}, the number of matches, got {request.offset}"
        )
    shown = room.take_all(_lines_of(matches, room))
    if not shown:
        shown = _outline(*matches[0], room)
    return "\n".join([*shown, _told(len(shown), request.offset, selection.total, "match", selection.complete)])


def _json_in(text: str) -> Any:
    """Return the value of a JSON text, or the list of values of JSON lines."""
    text = text.removeprefix("\ufeff")
    try:
        return loads_in_steps(text)
    except InvalidValueError as error:
        lines = [line for line in text.split("\n") if line.strip()]
        values = _values_of(lines) if len(lines) > 1 else None
        if values is None:
            raise InvalidValueError(
                f"json_path needs JSON, and this is none: {error}; use pattern or line_range"
            ) from None
        return values


def _values_of(lines: Iterable[str]) -> list[Any] | None:
    try:
        return [loads_in_steps(line) for line in lines]
    except InvalidValueError:
        return None


def _outline(where: str, value: Any, room: Room) -> list[str]:
    """Return one value that does not fit as an outline of it, in one piece; of a text, its beginning."""
    if isinstance(value, str):
        head = f"{shortened(where)} is a text of {len(value):,} characters; find places in it with pattern. It begins:"
        room.take(head)
        return [f"{head}\n{fitting(value, room)}"]
    head = f"{shortened(where)} is too large for one answer; ask for a part of it. Its outline:"
    room.take(head)
    text = _readable(value)
    return [f"{head}\n{extract(text, room.left, count_text=room.cost)}"]


def _lines_of(matches: Iterable[tuple[str, Any]], room: Room) -> Iterator[str]:
    """Yield a line for each match, up to one that is surely too large: it would only take time."""
    for where, found in matches:
        if not _is_small(found, room.left * _CHARACTERS_PER_TOKEN):
            return
        yield f"{shortened(where)}: {as_json_text(found)}"


def _is_small(value: Any, most: int) -> bool:
    """Say whether a value has at most so many characters, or values in it."""
    waiting, seen = [value], 0
    while waiting and seen <= most:
        item = waiting.pop()
        seen += len(item) if isinstance(item, str) else 1
        if isinstance(item, (list, dict)):
            seen += len(item)
            if seen <= most:
                waiting += item.values() if isinstance(item, dict) else item
    return seen <= most


def _readable(value: Any) -> str:
    try:
        return dumps_readable(value)
    except InvalidValueError:
        return as_json_text(value)


def _rows_page(content: bytes, content_type: str, request: Request, room: Room) -> str:
    table = Table.read(decoded(content), content_type)
    if table is None:
        raise InvalidValueError(
            "columns and where need CSV, TSV or JSON lines, and this is none; use pattern or json_path"
        )
    # Of very wide rows few are shown, and many would take much memory.
    most = min(_MOST_MATCHES, _MOST_CELLS // max(len(table.columns), 1) + 1)
    page = select_rows(table, request.columns, request.where, limit=most, offset=request.offset)
    columns = _fitting_columns(page.columns, room)
    head = ",".join(["line", *columns])
    room.take(head)
    shown = room.take_all(_row(row, len(columns)) for row in page.rows)
    notes = [table.note] if table.note else []
    if len(columns) < len(page.columns):
        notes.append(f"[Columns 1–{len(columns):,} of {len(page.columns):,}; name those to see with columns=[…].]")
    if page.rows and not shown:
        shown = [fitting(_row(page.rows[0], len(columns)), room)]
        notes.append(f"[The row is cut; see all of it from line_range={json.dumps({'start': page.rows[0].line})} on.]")
    return "\n".join([head, *shown, _told(len(shown), request.offset, page.total_matching, "row", True), *notes])


def _fitting_columns(columns: Sequence[str], room: Room) -> list[str]:
    """Return the cells of the header, or of its beginning if it would leave too little room for rows."""
    cells = [_cell(column) for column in columns]
    return room.part(_SHARE_OF_HEADER).take_all(cells) or [shortened(cells[0])]


def _row(row: Row, width: int) -> str:
    return ",".join([str(row.line), *map(_cell, row.values[:width])])


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else as_json_text(value)
    if any(mark in text for mark in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _told(shown: int, offset: int, total: int, noun: str, complete: bool) -> str:
    """Return what part this is, and how to go on."""
    found = f"{total:,}" if complete else f"{total:,}, found before the search was cut short"
    if not shown:
        return f"[No {noun} of {found}]"
    plural = f"{noun}es" if noun == "match" else f"{noun}s"
    part = f"{noun} {offset + 1:,}" if shown == 1 else f"{plural} {offset + 1:,}–{offset + shown:,}"
    more = f"; {go_on_with(offset=offset + shown)}" if offset + shown < total else ""
    return f"[{part} of {found}{more}]"
