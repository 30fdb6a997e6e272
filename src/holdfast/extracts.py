"""Extracts: what stands for a large text, or for removed messages, made of their own lines.

The head comes first, then the lines that show the most names not shown yet, in their order, then the names that are
left. A line says what a name is, a bare name only that it is there. What kind of text it is decides what is said of the
whole and how much a line weighs; all else is the same for every kind.

    JSON      its shape first
    tables    a summary of each column first
    logs      one line of each kind, with how many there are like it
    data      lines too long to read are cut into pieces
"""

from __future__ import annotations

import csv
import heapq
import json
import re
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from holdfast.encoded import described_bytes
from holdfast.messages import Message, text_of
from holdfast.names import Names, holds_credential
from holdfast.tokens import estimate_text

__all__ = ["extract", "extract_in", "extract_removed", "introduced"]

_HEAD, _WHOLE, _LIST, _SMALL_LIST = 0.1, 0.15, 0.36, 0.02
"""Shares of an extract: its head, what is said of the whole, the list of names; the rest is for lines."""
_REMOVED_LIST, _REMOVED_SHARE, _LISTED = 0.2, 10, "[Also in them: "
_SMALL = 400
"""An extract of fewer tokens has no room for a list of names, only for lines."""
_READABLE, _PIECE = 400, 200
"""A line of more characters is data; of any line, so many are shown."""
_PER_LINE = 61
"""What a line costs beside its characters: few long lines are easier to read than many short ones."""
_MOST_LINES, _MOST_READ = 20_000, 2_000_000
_TRIES, _FULL = 4, 0.95
_SAMPLE = 8_192
_DEFINED = 2.5
_FIRST, _FAILED = 3.0, 9.0

# Characters that break terminals, logs and some providers' parsers: controls, and halves of surrogate pairs.
_UNSENDABLE = dict.fromkeys([*range(9), *range(11, 32), 127, *range(0xD800, 0xE000)], "\ufffd")
_DEFINITION = re.compile(r"\b(?:def|class|func|type|function|const|interface|struct|fn|enum|trait)\b")
_FAILURE = re.compile(r"(?i)\b(?:error|fail(?:ed|ure)?|exception|traceback|fatal|panic|critical)")
_VARIES = re.compile(r"(?:0x)?[0-9a-f]{8,}|\d+")
_ENDS = re.compile(r"[,;}\])>|]+\s*|\s+")
_PLAIN_WORD = re.compile(r"[^\W\d_]{5,24}")
_NAMES = Names()


def extract(
    text: str,
    tokens: int,
    reference: str = "",
    *,
    about: str = "",
    names: Names = _NAMES,
    count_text: Callable[[str], int] = estimate_text,
) -> str:
    """Return *text* in at most *tokens* tokens: its head, its telling lines, and the names that are left.

    The first line says what it is an extract of, *about*, and where all of it is, its *reference*. A text that fits is
    returned as it is. Takes time linear in the length of the text.
    """
    if count_text(text) <= tokens:
        return text
    about = f"{about or f'{len(text):,} characters'}, {_counted_lines(text)}"
    if (encoded := described_bytes(text)) is not None:
        return introduced(reference, f"{about}, {encoded}")
    title = introduced(reference, about)
    source = _Source(text, names)

    def made(room: int) -> str:
        return f"{title}\n{source.extract(room - len(title), is_small=tokens < _SMALL)}"

    return _fitted(made, tokens, _characters_per_token(text, count_text), count_text) or title


def _fitted(made: Callable[[int], str], tokens: int, per_token: float, count_text: Callable[[str], int]) -> str:
    """Return the longest of a few tries to make a text of *tokens* tokens, given for how many characters to try."""
    room, best = int(tokens * per_token), ""
    for _ in range(_TRIES):
        tried = made(room).translate(_UNSENDABLE)
        size = max(count_text(tried), 1)
        if size <= tokens and len(tried) > len(best):
            best = tried
        if _FULL * tokens <= size <= tokens:
            break
        room = int(room * min(0.98 * tokens / size, 1.5))
    return best


def _counted_lines(text: str) -> str:
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"{lines:,} line{'' if lines == 1 else 's'}"


def introduced(reference: str, about: str) -> str:
    """Return the line that stands where a content did: what it is, and its *reference* if it is stored."""
    return f"[Offloaded as {reference} : {about}]" if reference else f"[Extract of {about}]"


def _characters_per_token(text: str, count_text: Callable[[str], int]) -> float:
    sample = text[:_SAMPLE] + text[max(len(text) // 2, _SAMPLE) :][:_SAMPLE]
    return len(sample) / max(count_text(sample), 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Line:
    """A line, or a piece of a long one, with its names. *alike* is how many there are of its kind."""

    at: int
    text: str
    names: frozenset[str]
    weight: float = 1.0
    alike: int = 1


class _Source:
    """A text taken apart once, for extracts of any size."""

    def __init__(self, text: str, names: Names) -> None:
        self._text = text
        self._lines = list(_lines_of(text, names))
        self._whole = _shape_of(text) or _columns_of(self._lines)
        self._telling = self._lines if self._whole else _one_of_each_kind(self._lines)

    def extract(self, room: int, *, is_small: bool) -> str:
        """Return about *room* characters of it."""
        head = self._head(int(room * _HEAD))
        shown = {name for line in head for name in line.names}
        whole = _fitting(self._whole, int(room * _WHOLE))
        left = room - sum(map(_cost, head)) - sum(map(len, whole))
        rest = self._telling[len(head) :]
        for_lines = left - int(room * (_SMALL_LIST if is_small else _LIST))
        body = "\n".join([*_shown(head, 0), *whole, *_shown(_filled(rest, for_lines, shown), len(head))])
        left = room - len(body)
        words = _fitting(self._rest(shown), left if is_small else left // 2)
        if not is_small:
            here = set(_PLAIN_WORD.findall(body))
            left -= sum(map(len, words)) + len(words)
            words += _fitting((word for word in self._once if word not in here), left)
        return f"{body}\n[Also in it: {' '.join(words)}]" if words else body

    def _head(self, room: int) -> list[_Line]:
        """Return the first lines, as many as fit, and at least the beginning of one."""
        for at, line in enumerate(self._lines):
            room -= _cost(line)
            if room < 0:
                first = self._lines[0]
                return self._lines[:at] or [replace(first, text=first.text[: room + _cost(first)])]
        return self._lines

    def _rest(self, shown: set[str]) -> list[str]:
        """Return the names not *shown*, those that stand on one line first, the shortest first."""
        return sorted(self._counts.keys() - shown, key=lambda name: (min(self._counts[name], 2), len(name), name))

    @cached_property
    def _counts(self) -> Counter[str]:
        counts: Counter[str] = Counter()
        for line in self._lines:
            counts.update(line.names)
        return counts

    @cached_property
    def _once(self) -> list[str]:
        """The plain words that stand once in the text: in prose, they are what a place is known by."""
        counts = Counter(_PLAIN_WORD.findall(self._text[:_MOST_READ]))
        return sorted((word for word, count in counts.items() if count == 1), key=lambda word: (len(word), word))


def _shown(lines: Iterable[_Line], at: int) -> Iterator[str]:
    """Yield lines as they are shown from the one with that number on, with a mark where others are left out."""
    for line in lines:
        alike = f" {line.alike:,} lines like this one:" if line.alike > 1 else ""
        if alike or line.at != at:
            yield f"…{alike}"
        yield line.text[:_PIECE]
        at = line.at + 1


def _fitting(words: Iterable[str], room: int) -> list[str]:
    fitting = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        fitting.append(word)
    return fitting


def _cost(line: _Line) -> int:
    """Return how many characters a line takes, with what stands around it."""
    return min(len(line.text), _PIECE) + 3


def _filled(lines: Sequence[_Line], room: int, shown: set[str]) -> list[_Line]:
    """Return the telling lines, and where these leave room the first of the others, in their order."""
    telling = _telling(lines, room, shown)
    room -= sum(map(_cost, telling))
    others, picked = [], {line.at for line in telling}
    for line in lines:
        room -= 0 if line.at in picked else _cost(line)
        if room < 0:
            break
        if line.at not in picked and not holds_credential(line.text):
            others.append(line)
    return sorted(telling + others, key=lambda line: line.at)


def _telling(lines: Sequence[_Line], room: int, shown: set[str]) -> list[_Line]:
    """Return the lines with the most names not yet *shown* for the room they take, in their order."""

    def gain(line: _Line) -> float:
        return line.weight * len(line.names - shown) / (_cost(line) + _PER_LINE)

    heap = [(-gain(line), at) for at, line in enumerate(lines) if line.names]
    heapq.heapify(heap)
    picked: list[int] = []
    while heap and room > 0:
        _, at = heapq.heappop(heap)
        if not (now := gain(lines[at])):
            continue
        if heap and -now > heap[0][0]:
            # What others showed meanwhile made it worth less: a gain only ever falls.
            heapq.heappush(heap, (-now, at))
        elif _cost(lines[at]) <= room and not holds_credential(lines[at].text):
            room -= _cost(lines[at])
            insort(picked, at)
            shown |= lines[at].names
    return [lines[at] for at in picked]


# Lines


def _lines_of(text: str, names: Names) -> Iterator[_Line]:
    """Yield the lines of a text; of more than 20,000, so many that are spread evenly."""
    lines = text.split("\n")
    at = 0
    for line in lines[:: -(-len(lines) // _MOST_LINES)]:
        for piece in (line,) if len(line) <= _READABLE else _pieces(line[:_MOST_READ]):
            found = frozenset(names.of(piece))
            yield _Line(at, piece, found, _DEFINED if found and _DEFINITION.search(piece) else 1.0)
            at += 1


def _pieces(line: str) -> Iterator[str]:
    """Cut a long line into pieces of at most 200 characters, behind a mark or a blank if there is one."""
    start = 0
    while start < len(line):
        end = start + _PIECE
        if end < len(line):
            end = max((found.end() for found in _ENDS.finditer(line, start + _PIECE // 2, end)), default=end)
        yield line[start:end]
        start = end


def _one_of_each_kind(lines: Sequence[_Line]) -> Sequence[_Line]:
    """Return lines of a log with more weight for the first of each kind, and most for a failure; others as they are.

    In a log most lines differ from others only in their numbers.
    """
    kinds = Counter(_kind(line.text) for line in lines)
    if len(lines) < 50 or 5 * len(kinds) > len(lines):
        return lines
    weighed = []
    for line in lines:
        alike = kinds.pop(_kind(line.text), 0)
        weighed.append(
            replace(line, alike=alike, weight=_FAILED if _FAILURE.search(line.text) else _FIRST) if alike else line
        )
    return weighed


def _kind(text: str) -> str:
    return _VARIES.sub("#", text)[:100]


# What is said of the whole


def _shape_of(text: str) -> list[str]:
    """Return the shape of a JSON value."""
    if text[:1] not in ("{", "[") or len(text) > _MOST_READ:
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [f"[Its shape: {shape}]" for shape in (_shape(value, 4)[: 4 * _PIECE],) if shape]


def _shape(value: Any, depth: int) -> str:
    match value:
        case dict() if depth:
            inner = ((key, _shape(item, depth - 1)) for key, item in list(value.items())[:40])
            more = [f"… {len(value) - 40:,} more"] if len(value) > 40 else []
            return "{" + ", ".join([*(f"{key}: {shape}" if shape else key for key, shape in inner), *more]) + "}"
        case list() if value and depth:
            return f"[{len(value):,} × {_shape(value[0], depth - 1) or type(value[0]).__name__}]"
        case dict() | list():
            return "{…}" if isinstance(value, dict) else "[…]"
    return ""


def _columns_of(lines: Sequence[_Line]) -> list[str]:
    """Return a summary of each column of a table."""
    first, *rest = [line.text for line in lines[:: -(-len(lines) // 1_000)]]
    separator = max(",\t;|", key=first.count)
    try:
        header, *rows = csv.reader([first, *rest], delimiter=separator)
    except csv.Error:
        return []
    fitting = [row for row in rows if len(row) == len(header)]
    if len(header) < 2 or len(rows) < 10 or len(fitting) < 0.9 * len(rows):
        return []
    return [f"[{len(lines):,} rows. {'; '.join(map(_column, header, zip(*fitting, strict=True)))[: 3 * _PIECE]}]"]


def _column(name: str, values: Sequence[str]) -> str:
    counts = Counter(values)
    if len(counts) <= 6:
        return f"{name}: {', '.join(f'{value[:20]} × {count}' for value, count in counts.most_common())}"
    try:
        numbers = [float(value) for value in values if value]
    except ValueError:
        return f"{name}: {len(counts)} values"
    return f"{name}: {min(numbers):g} to {max(numbers):g}"


# Removed messages


def extract_removed(
    removed: Sequence[Message],
    stays: Iterable[Message],
    tokens: int,
    *,
    names: Names = _NAMES,
    count_text: Callable[[str], int] = estimate_text,
) -> str:
    """Return what stands for *removed* messages, in at most *tokens* tokens: lines, the newest first, then names.

    The lines are those that show the most names which stand on no line of a message that *stays*. Lines that earlier
    such extracts held stand among them again.
    """
    texts = [text_of(message) for message in reversed(removed) if message.made_as is None]
    earlier = [_taken_apart(message) for message in reversed(removed) if message.made_as is not None]
    # What stands for little is little: else, in a conversation of short messages, nothing would be gained.
    gained = sum(map(count_text, texts)) // _REMOVED_SHARE
    tokens = min(tokens, gained + sum(count_text(part) for parts in earlier for part in parts))
    known = {name for message in stays for line in text_of(message).split("\n") for name in _names_shown(line, names)}
    sources = [*texts, *(body for body, _ in earlier)]
    lines = [replace(line, weight=1.0) for text in sources for line in _lines_of(text, names) if line.names - known]
    listed = {name for line in lines for name in line.names}.union(*(names.each(rest) for _, rest in earlier)) - known
    if not listed:
        return ""

    def made(room: int) -> str:
        shown = set(known)
        telling = [line.text[:_PIECE] for line in _telling(lines, int(room * (1 - _REMOVED_LIST)), shown)]
        left = room - sum(map(len, telling)) - len(telling)
        rest = _fitting(sorted(listed - shown, key=lambda name: (-len(name), name)), left)
        return "\n".join([*telling, f"{_LISTED}{' '.join(rest)}]"] if rest else telling)

    sample = "\n".join([*(line.text for line in lines[:500]), *sorted(listed)[:500]])
    return _fitted(made, tokens, _characters_per_token(sample, count_text), count_text)


def extract_in(message: Message) -> str:
    """Return the extract that a message holds which stands for removed ones: what follows the line that says so."""
    _, end, behind = message.text.partition("</summary>\n")
    return (behind if end else message.text).partition("\n")[2]


def _taken_apart(message: Message) -> tuple[str, str]:
    """Return the lines and the list of names in such an extract."""
    lines = extract_in(message).split("\n")
    listed = lines.pop() if lines[-1].startswith(_LISTED) else ""
    return "\n".join(lines), listed.removeprefix(_LISTED)


def _names_shown(line: str, names: Names) -> Iterable[str]:
    """Return the names that a line shows. In a long list, or in data, a name says nothing."""
    return names.each(line) if len(line) <= _PIECE else ()
