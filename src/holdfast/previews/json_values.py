"""Previews of JSON: the shape of the whole, values from all over it, and its first and last items."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from holdfast.gentle_json import loads_in_steps
from holdfast.previews.cut_json import read_until_cut
from holdfast.previews.quoting import counted, evenly, lines_of
from holdfast.previews.room import Room
from holdfast.previews.shape_lines import shape_lines
from holdfast.previews.shapes import opened
from holdfast.previews.telling import Found, telling, with_rare_words

__all__ = ["json_path", "preview_json", "texts_of", "told_texts"]

# The way to a value by indices, its path, and the value.
_Node = tuple[tuple[int, ...], str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False)
_DEEPEST = 12
_MOST_ITEMS, _MOST_LOOKED_INTO = 6_000, 200
_LONGEST_TEXT = 20_000
_LONGEST_KEY = 80
_LONGEST_ITEM = 320
_LONGEST_LINE = 400
_TEXTS, _WORDS = 0.5, 0.4
_MOST_UNREADABLE = 0.5


def preview_json(text: str, room: Room) -> str | None:
    """Return the shape of a JSON text, values, and its first and last items, or None if it cannot be read as JSON."""
    try:
        value, cut = _read(text)
    except (ValueError, RecursionError):
        return None
    title = f"JSON, {counted(len(text), 'character')}{cut}"
    return with_rare_words(lambda part: _written(title, value, part), lines_of(text), room, share=_WORDS, numbers=True)


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
    path, main = _main_collection(value)
    if not isinstance(main, (dict, list)) or not main:
        return []
    items = [_item_line(key, item, path) for key, item in _items(main, sorted({0, len(main) - 1}))]
    more = [f"… {len(main) - 2:,} more items …"] if len(main) > 2 else []
    return room.take_all([items[0], *more, *items[1:]])


def _item_line(key: str | int, item: Any, path: str) -> str:
    written = ""
    for part in _ENCODER.iterencode(item):
        written += part
        if len(written) > _LONGEST_ITEM:
            return f"{json_path(path, key)}: {written[:_LONGEST_ITEM]}… [cut]"
    return f"{json_path(path, key)}: {written}"


def _main_collection(value: Any) -> tuple[str, Any]:
    """Return the list, or the object, that most of the value is likely to be in: the one with the most items."""
    path, best = "$", value
    for key, below in _items(value, range(_MOST_LOOKED_INTO)):
        if isinstance(below, (dict, list)) and len(below) > max(len(best), 1):
            path, best = json_path("$", key), below
    return path, best


def _items(value: Any, indices: Iterable[int]) -> list[tuple[str | int, Any]]:
    """Return the items at these indices, as far as there are any, with their keys."""
    if isinstance(value, list):
        return [(index, value[index]) for index in indices if index < len(value)]
    items = list(value.items()) if isinstance(value, dict) else []
    return [items[index] for index in indices if index < len(items)]


def texts_of(value: Any, path: str = "$") -> Iterator[Found]:
    """Yield the strings of several words, line by line and each with its path; of very many, some from everywhere."""
    found: list[_Node] = []
    level: list[_Node] = [((), path, value)]
    for _ in range(_DEEPEST):
        found += [node for node in level if isinstance(node[2], str)]
        level = list(_below([node for node in level if isinstance(node[2], (dict, list))]))
    for _, place, text in sorted(found, key=itemgetter(0)):
        yield from ((place, line) for line in text[:_LONGEST_TEXT].split("\n") if _is_text(line))


def _below(level: Sequence[_Node]) -> Iterator[_Node]:
    """Yield what the lists and objects of one level hold. If that is too much, some of them are left out."""
    held = sum(len(value) for _, _, value in level)
    for at in evenly(len(level), -(-len(level) * _MOST_ITEMS // max(held, _MOST_ITEMS))):
        order, path, value = level[at]
        chosen = evenly(len(value), _MOST_ITEMS)
        for index, (key, below) in zip(chosen, _items(value, chosen), strict=True):
            if below and isinstance(below, (str, dict, list)):
                yield (*order, index), json_path(path, key), below


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
