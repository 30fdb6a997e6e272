"""Lines that tell the shape of values, and as many of the values as there is room for."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.previews.examples import Examples, short
from holdfast.previews.room import Room
from holdfast.previews.shapes import Place, Step

__all__ = ["shape_lines", "value_line", "value_lines"]

_LONGEST_KEY = 80
_FEW = 8
_DEEPEST = 10
_LEAST_LINE = 6
_KEYS, _HIDDEN = 6, 6
_SOME_KEYS, _SOME_HIDDEN = 30, 120
_LEVELS = tuple(dict.fromkeys(int(8 * 1.1**power) for power in range(80)))


def shape_lines(place: Place, room: Room, *, names: float = 0.45) -> list[str]:
    """Take the tree of a place: names first, up to that share of the room, then values for the rest."""
    outline = _Outline(place)
    outline.grow(room.part(names))
    return _filled(outline.lines, room)


def value_lines(places: Sequence[Place], room: Room) -> list[str]:
    """Take one line for each place, with as many values as there is room for."""
    return _filled(lambda characters: [value_line(place, characters) for place in places], room)


def _filled(written: Callable[[int], list[str]], room: Room) -> list[str]:
    """Take the lines with the most characters of values that fit."""
    lines = written(0)
    low, high = 0, len(_LEVELS)
    while low < high:
        middle = (low + high) // 2
        attempt = written(_LEVELS[middle])
        if sum(map(room.cost, attempt)) <= room.left:
            lines, low = attempt, middle + 1
        else:
            high = middle
    return room.take_all(lines)


def value_line(place: Place, characters: int) -> str:
    """Return one line on the values of a place: kinds, lengths, ranges, and examples of about so many characters."""
    optional = f" ({place.present}/{place.parents})" if place.present < place.parents else ""
    notes = [_step_note(step, characters) for step in place.steps]
    paired = bool(place.steps) and place.steps[-1].pairs is not None
    notes.append(_values_note(place, 0 if paired else characters))
    return f"{short(place.label, _LONGEST_KEY)}{optional}: {'; '.join(notes)}"


@dataclass(eq=False)
class _Outline:
    """A place, those places below it that are shown, and the names of the others."""

    place: Place
    depth: int = 0
    shown: list[_Outline] = field(default_factory=list)
    hidden: Examples | None = None

    def grow(self, room: Room) -> None:
        """Show what is below, level by level, as long as there is room for the names."""
        waiting = deque([self])
        room.take(self.own_line(0))
        while waiting:
            outline = waiting.popleft()
            outline.show_children(room)
            waiting.extend(below for below in outline.shown if below.depth < _DEEPEST)

    def show_children(self, room: Room) -> None:
        children = [_Outline(child, self.depth + 1) for child in self.place.children]
        frequent = sorted(children, key=lambda child: -child.place.present)
        taken = {id(child) for child in frequent if room.left >= _LEAST_LINE and room.take(child.own_line(0))}
        self.shown = [child for child in children if id(child) in taken]
        keys = {child.place.key for child in self.shown}
        rest = Counter({key: count for key, count in self.place.names.items() if key not in keys})
        self.hidden = Examples(rest) if rest else None

    def own_line(self, characters: int) -> str:
        return " " * self.depth + value_line(self.place, characters)

    def lines(self, characters: int) -> list[str]:
        found = [self.own_line(characters)]
        for below in self.shown:
            found.extend(below.lines(characters))
        if self.hidden:
            named = self.hidden.text(max(_HIDDEN * characters, _SOME_HIDDEN))
            found.append(f"{' ' * (self.depth + 1)}… {len(self.hidden.values):,} more keys: {named}")
        return found


def _step_note(step: Step, characters: int) -> str:
    fewest, most = min(step.lengths), max(step.lengths)
    length = f"{most:,}" if fewest == most else f"{fewest:,}..{most:,}"
    several = "" if len(step.lengths) == 1 else f"{len(step.lengths):,} "
    if step.keys is None:
        return f"{several}lists of {length}" if several else f"list of {length}"
    maps = f"{several}maps of {length} keys, {len(step.keys.values):,} distinct" if several else f"map of {length} keys"
    return f"{maps}: {(step.pairs or step.keys).text(max(_KEYS * characters, _SOME_KEYS))}"


def _values_note(place: Place, characters: int) -> str:
    kinds = place.kinds
    if not kinds:
        return "empty"
    said = [
        note for note in (_few(place.flags, characters), _numbers(place, characters), _texts(place, characters)) if note
    ]
    seen = [f"{len(place.values):,} of {place.count:,} looked at"] if len(place.values) < place.count else []
    if len(kinds) > 1:
        return ", ".join([*seen, *(f"{kind} {count:,}" for kind, count in kinds.most_common()), *said])
    kind = f"{max(place.count, len(place.values)):,} {next(iter(kinds))}s" if place.steps else next(iter(kinds))
    short = said and not seen and not place.steps and not _misleads(kind, said[0])
    return said[0] if short else ", ".join([kind, *seen, *said])


def _misleads(kind: str, note: str) -> bool:
    """Say whether strings, which are shown without quotes, could be taken for something else."""
    return kind == "string" and (note[:1].isdigit() or note in ("true", "false", "null"))


def _few(values: Examples, characters: int) -> str:
    return values.counted(characters) if values.values and characters else ""


def _numbers(place: Place, characters: int) -> str:
    numbers = place.numbers
    if len(numbers.values) <= _FEW:
        return _few(numbers, max(characters, 1))
    some = numbers.text(characters / (2 if place.steps else 4))
    return f"{place.bounds}: {some}" if some else place.bounds


def _texts(place: Place, characters: int) -> str:
    texts = place.texts
    if place.repeats_key:
        return "same as its key"
    if len(texts.values) <= _FEW:
        return _few(texts, characters)
    some = texts.text(texts.weight * characters)
    return f"{len(texts.values):,} distinct{': ' if some else ''}{some}"
