"""Previews of JSON: the shape of the whole, values from all over it, and its first and last items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from holdfast.gentle_json import loads_in_steps
from holdfast.previews.cut_json import read_until_cut
from holdfast.previews.quoting import counted, evenly, lines_of
from holdfast.previews.room import Room
from holdfast.previews.shape_lines import shape_lines
from holdfast.previews.shapes import opened
from holdfast.previews.telling import Found, telling, with_rare_words

__all__ = ["json_path", "preview_json", "texts_of", "told_texts"]

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DEEPEST = 12
_MOST_ITEMS = 20_000
_LONGEST_KEY = 80
_LONGEST_ITEM = 320
_LONGEST_LINE = 400
_TEXTS = 0.5
_MOST_UNREADABLE = 0.5


def preview_json(text: str, room: Room) -> str | None:
    """Return the shape of a JSON text, values, and its first and last items, or None if it cannot be read as JSON."""
    try:
        value, cut = _read(text)
    except (ValueError, RecursionError):
        return None
    title = f"JSON, {counted(len(text), 'character')}{cut}"
    return with_rare_words(lambda part: _written(title, value, part), lines_of(text), room)


def _written(title: str, value: Any, room: Room) -> list[str]:
    said = room.take_all([title])
    items = _first_and_last(value, room)
    texts = told_texts(texts_of(value), room)
    return [*said, *shape_lines(opened("$", [value]), room), *items, *texts]


def told_texts(texts: Iterable[Found], room: Room) -> list[str]:
    """Take some of the texts, within a share of the room."""
    heading = "texts from all over:"
    if not room.take(heading):
        return []
    told = room.within(_TEXTS, lambda part: telling(list(texts), part))
    return [heading, *told] if told else []


def _read(text: str) -> tuple[Any, str]:
    """Return the value, and what is to be said if there is more than it or less than there should be."""
    try:
        return loads_in_steps(text), ""
    except ValueError:
        value, end = read_until_cut(text)
    if end < _MOST_UNREADABLE * len(text):
        raise ValueError("most of it cannot be read")
    missing = counted(len(text) - end, "character")
    return value, f"; not valid as a whole: it was read up to character {end:,}, the last {missing} are not shown"


def _first_and_last(value: Any, room: Room) -> list[str]:
    path, items = _main_collection(value)
    if not items:
        return []
    lines = [_item_line(*items[0], path)]
    if len(items) > 1:
        more = [f"… {len(items) - 2:,} more items …"] if len(items) > 2 else []
        lines += [*more, _item_line(*items[-1], path)]
    return room.take_all(lines)


def _item_line(key: str | int, item: Any, path: str) -> str:
    written = ""
    for part in _ENCODER.iterencode(item):
        written += part
        if len(written) > _LONGEST_ITEM:
            return f"{json_path(path, key)}: {written[:_LONGEST_ITEM]}… [cut]"
    return f"{json_path(path, key)}: {written}"


def _main_collection(value: Any) -> tuple[str, list[tuple[str | int, Any]]]:
    """Return the list, or the object, that most of the value is likely to be in: the one with the most items."""
    path, best = "$", _items(value)
    for key, below in best[:200]:
        if len(inner := _items(below)) > max(len(best), 1):
            path, best = json_path("$", key), inner
    return path, best


def _items(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, list):
        return list(enumerate(value))
    return list(value.items()) if isinstance(value, dict) else []


def texts_of(value: Any, path: str = "$", level: int = 0) -> Iterator[Found]:
    """Yield the strings of several words, line by line and each with its path; of very many items, those of some."""
    if isinstance(value, str):
        yield from ((path, line) for line in value.split("\n") if _is_text(line))
    elif level < _DEEPEST and isinstance(value, (dict, list)):
        items = _items(value)
        for key, below in (items[index] for index in evenly(len(items), _MOST_ITEMS)):
            if isinstance(below, (str, dict, list)):
                yield from texts_of(below, json_path(path, key), level + 1)


def _is_text(line: str) -> bool:
    start = line[:_LONGEST_LINE].strip()
    return start.count(" ") > 1 or (len(start) > 12 and not start.isascii())


def json_path(path: str, key: str | int) -> str:
    """Return the path of what stands at *key* in what stands at *path*."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    name = key if len(key) <= _LONGEST_KEY else f"{key[:_LONGEST_KEY]}…"
    return (
        f"{path}.{name}" if name.replace("-", "_").isidentifier() else f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    )
