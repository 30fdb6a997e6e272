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
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, islice
from typing import Any, NamedTuple, TypeAlias

from holdfast.encoded import described_bytes
from holdfast.messages import Message, text_of
from holdfast.names import Names, holds_credential
from holdfast.tokens import estimate_text

__all__ = ["extract", "extract_in", "extract_removed", "introduced"]

_HEAD, _WHOLE, _LIST, _SMALL_LIST = 0.1, 0.15, 0.4, 0.02
"""Shares of an extract: its head, what is said of the whole, the list of names; the rest is for lines."""
_REMOVED_LIST, _REMOVED_SHARE, _LISTED = 0.2, 10, "[Also in them: "
_SMALL = 400
"""An extract of fewer tokens has no room for a list of names, only for lines."""
_PIECE = 200
"""A line of more characters is cut into pieces of about so many; of any piece, no more are shown."""
_PER_LINE = 61
"""What a line costs beside its characters: few long lines are easier to read than many short ones."""
_MOST_READ_OF_LOG = 100_000
_MOST_READ, _FIRST_READ, _MOST_PARSED = 400_000, 100, 2_000_000
"""Of a larger text, so many bytes are read, from everywhere in it, besides so many first lines."""
_TRIES, _MOST_TRIES, _FIRST_TRY, _FULL = 4, 7, 1.15, 0.94
"""Lines that were chosen from everywhere have more characters for a token than the text they are from."""
_SAMPLE = 8_192
_DEFINED, _BEGINNING = 2.5, 60
_FIRST, _FAILED = 3.0, 9.0

# Characters that break terminals, logs and some providers' parsers: controls, and halves of surrogate pairs.
_UNSENDABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_DEFINITION = re.compile(r"\b(?:def|class|func|type|function|const|interface|struct|fn|enum|trait)\b")
_FAILURE = re.compile(r"\b(?:error|fail|exception|traceback|fatal|panic|critical)")
# A long line is cut behind a mark, else at a blank: no word ends up in two pieces, nor a password without the word that
# says so.
_PIECES = re.compile(
    r".{100,200}(?<=[,;}\])>|])|.{100,200}(?<=[^\s:=]\s)|.{100,2000}?(?:[,;}\])>|\s]|$)|.{1,2000}", re.DOTALL
)
_TIME = re.compile(r"\d\d:\d\d")
_DIGITS = b"0123456789abcdefABCDEF"
_QUOTABLE, _NUMBERS = re.compile(r"[^\[\]{}<>\n\r]{0,60}"), re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
# No part of a longer word, which may be a password.
_PLAIN_WORD = re.compile(r"(?<![\w.+/=-])[^\W\d_]{5,24}(?![\w+/=-])")
_ASCII_PLAIN_WORD = re.compile(_PLAIN_WORD.pattern.replace(r"[^\W\d_]", "[A-Za-z]"))
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
    about, text = about or f"{len(text):,} characters", text.replace("\r\n", "\n").replace("\r", "\n")
    about = f"{about}, {_counted_lines(text)}"
    if (encoded := described_bytes(text)) is not None:
        return introduced(reference, f"{about}, {encoded}")
    title, per_token = introduced(reference, about), _characters_per_token(text, count_text)
    source = _Source(text, names, int(tokens * per_token), has_list=tokens >= _SMALL)

    def made(room: int) -> str:
        return f"{title}\n{source.extract(room - len(title))}"

    return _fitted(made, tokens, per_token, count_text) or title


def _fitted(made: Callable[[int], str], tokens: int, per_token: float, count_text: Callable[[str], int]) -> str:
    """Return the longest of a few tries to make a text of *tokens* tokens, given for how many characters to try."""
    room, best, exceeded = int(_FIRST_TRY * tokens * per_token), "", 0
    for number in range(1, _MOST_TRIES + 1):
        tried = _UNSENDABLE.sub("\ufffd", made(room))
        size = max(count_text(tried), 1)
        if size <= tokens and len(tried) > len(best):
            best = tried
        if _FULL * tokens <= size <= tokens or (best and number >= _TRIES):
            break
        # Where a line more or less makes the difference, it takes larger steps.
        exceeded += size > tokens
        room = int(room * min((1 - 0.01 * 2**exceeded) * tokens / size, 1.5))
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


_Read: TypeAlias = tuple[int, str, frozenset[str]]
"""What `_Line` holds, as it is read: of thousands of lines, a few are looked at."""


class _Line(NamedTuple):
    """A line, or a piece of a long one, with its names."""

    at: int
    text: str
    names: frozenset[str]

    @property
    def cost(self) -> int:
        return _cost_of(self.text)


def _cost_of(text: str) -> int:
    """Return how many characters a line takes, with what stands around it."""
    return len(text[:_PIECE]) + 3


def _cut(text: str) -> str:
    return text if len(text) <= _PIECE else f"{text[:_PIECE]}…"


class _Source:
    """A text taken apart once, for extracts of about *room* characters."""

    def __init__(self, text: str, names: Names, room: int, *, has_list: bool) -> None:
        pieces = _pieces_of(text)
        self._names, self._pieces = names, len(pieces)
        self._whole = _shape_of(text) or _columns_of(pieces)
        self._kinds = {} if self._whole else _kinds_of(pieces)
        self._read = _read(pieces, names, self._kinds)
        self._has_list = has_list
        self._head = self._first_lines(int(room * _HEAD))
        self._ranking = _Ranking(self._read[len(self._head) :], _names_of(self._head), self._weight, self._kinds)

    def extract(self, room: int) -> str:
        """Return about *room* characters of it."""
        head, whole = self._head, _fitting(self._whole, int(room * _WHOLE))
        left = room - _cost(head) - sum(map(len, whole))
        for_lines = left - int(room * (_LIST if self._has_list else _SMALL_LIST))
        telling = self._ranking.fitting(for_lines)
        lines = self._filled(telling, for_lines)
        end = ["…"] if [*head, *lines][-1].at + 1 < self._pieces else []
        body = "\n".join([*self._shown(head, 0), *whole, *self._shown(lines, len(head)), *end])
        left, shown = room - len(body), _names_of(head) | _names_of(telling)
        rest = (name for name in self._rest if name not in shown)
        if not self._has_list:
            words = _fitting(rest, left)
        else:
            words = _fitting(rest, left // 2)
            here = set(_plain_words(body))
            once = (word for word in self._once if word not in here)
            words += _fitting(once, left - sum(map(len, words)) - len(words))
        return f"{body}\n[Also in it: {' '.join(words)}]" if words else body

    def _first_lines(self, room: int) -> list[_Line]:
        """Return the first lines, as many as fit, and at least the beginning of one."""
        first: list[_Line] = []
        for line in map(_Line._make, self._read):
            room -= line.cost
            if room < 0:
                return first or [line._replace(text=f"{line.text[: room + line.cost]}…")]
            first.append(line)
        return first

    def _filled(self, telling: Sequence[_Line], room: int) -> list[_Line]:
        """Return the telling lines, and where these leave room the first of the others, in their order."""
        others, picked = [], {line.at for line in telling}
        room -= _cost(telling)
        for line in map(_Line._make, islice(self._read, len(self._head), None)):
            room -= 0 if line.at in picked else line.cost
            if room < 0:
                break
            if line.at not in picked and not holds_credential(line.text):
                others.append(line)
        return sorted([*telling, *others], key=lambda line: line.at)

    def _shown(self, lines: Iterable[_Line], at: int) -> Iterator[str]:
        """Yield lines as they are shown from the one with that number on, with a mark where others are left out."""
        for line in lines:
            alike = self._kinds.get(line.at, 1)
            if alike > 1:
                yield f"… {alike:,} lines like this one:"
            elif line.at != at:
                yield "…"
            yield _cut(line.text)
            at = line.at + 1

    def _weight(self, at: int, text: str) -> float:
        if at in self._kinds:
            return _FAILED if _FAILURE.search(text.lower()) else _FIRST
        return _DEFINED if _DEFINITION.search(text, 0, _BEGINNING) else 1.0

    @cached_property
    def _rest(self) -> list[str]:
        """All names, those that stand on one line first, the shortest first."""
        counts = Counter(chain.from_iterable(held for _, _, held in self._read))
        return sorted(counts, key=lambda name: (min(counts[name], 2), len(name), name))

    @cached_property
    def _once(self) -> list[str]:
        """The plain words that were read once: in prose, they are what a place is known by."""
        counts = Counter(_plain_words("\n".join([text for _, text, _ in self._read])))
        once = (word for word, count in counts.items() if count == 1 and self._names.may_be_listed(word))
        return sorted(once, key=lambda word: (len(word), word))


def _cost(lines: Iterable[_Line]) -> int:
    return sum(line.cost for line in lines)


def _names_of(lines: Iterable[_Line]) -> set[str]:
    return set().union(*(line.names for line in lines))


def _plain_words(text: str) -> list[str]:
    return (_ASCII_PLAIN_WORD if text.isascii() else _PLAIN_WORD).findall(text)


def _fitting(words: Iterable[str], room: int) -> list[str]:
    fitting = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        fitting.append(word)
    return fitting


_Weight: TypeAlias = Callable[[int, str], float]


class _Ranking:
    """Lines with names, those first that show the most names not *shown* before for the room they take.

    A line of *kinds* shows one more by itself: that there is such a kind.
    """

    def __init__(
        self, lines: Sequence[_Read], shown: Set[str], weight: _Weight, kinds: Container[int] = frozenset()
    ) -> None:
        self._best: list[_Line] = []
        self._rest = _ranked(lines, shown, weight, kinds)

    def fitting(self, room: int) -> list[_Line]:
        """Return the best lines as far as they fit."""
        fitting = []
        for line in chain(self._best, self._more()):
            room -= line.cost
            if room < 0:
                break
            fitting.append(line)
        return fitting

    def _more(self) -> Iterator[_Line]:
        for line in self._rest:
            self._best.append(line)
            yield line


def _ranked(lines: Sequence[_Read], shown: Set[str], weight: _Weight, kinds: Container[int]) -> Iterator[_Line]:
    shown = set(shown)
    by_itself = [at in kinds for at, _, _ in lines]
    of_name = [
        weight(at, text) / (_cost_of(text) + _PER_LINE) if held or own else 0.0
        for (at, text, held), own in zip(lines, by_itself, strict=True)
    ]
    heap = [(-value * (len(lines[at][2]) + by_itself[at]), at) for at, value in enumerate(of_name) if value]
    heapq.heapify(heap)
    while heap:
        before, at = heap[0]
        line = _Line(*lines[at])
        now = -of_name[at] * (len(line.names - shown) + by_itself[at])
        if now > before:
            # What others showed meanwhile made it worth less: that only ever falls.
            heapq.heapreplace(heap, (now, at)) if now else heapq.heappop(heap)
            continue
        heapq.heappop(heap)
        if not holds_credential(line.text):
            shown |= line.names
            yield line


# Lines


def _pieces_of(text: str) -> list[str]:
    """Return the lines of a text, those that are too long to read in pieces."""
    pieces: list[str] = []
    for line in text.split("\n"):
        if len(line) <= _PIECE:
            pieces.append(line)
        else:
            pieces.extend(_PIECES.findall(line))
    return pieces


def _kinds_of(pieces: Sequence[str]) -> dict[int, int]:
    """Return the first line of each kind in a log, and how many there are alike; nothing for other texts.

    In a log most lines differ from others only in their numbers.
    """
    marks = "\n".join(pieces).encode("utf-8", "surrogatepass").translate(None, _DIGITS).split(b"\n")
    kinds = Counter(marks)
    del kinds[b""]
    if len(marks) < 50 or 5 * len(kinds) > len(marks):
        return {}
    return {at: count for at, mark in enumerate(marks) if (count := kinds.pop(mark, 0))}


def _read(pieces: Sequence[str], names: Names, kinds: Mapping[int, int]) -> list[_Read]:
    """Return lines with their names: of a large text its beginning, one of each kind, and some from everywhere."""
    most = _MOST_READ_OF_LOG if kinds or _is_log(pieces) else _MOST_READ
    if sample := "".join(pieces[:_FIRST_READ])[:_SAMPLE]:
        most = most * len(sample) // len(sample.encode("utf-8", "surrogatepass"))
    places: Sequence[int] = range(len(pieces))
    if (stride := _stride(pieces, most)) > 1:
        firsts = list(kinds)[:: _stride([pieces[at] for at in kinds], most)]
        places = sorted({*places[:_FIRST_READ], *firsts, *places[::stride]})
    texts = [pieces[at] for at in places]
    return list(zip(places, texts, names.by_line("\n".join(texts)), strict=True))


def _is_log(pieces: Sequence[str]) -> bool:
    """Return True if nearly all lines hold a time."""
    some = pieces[:: len(pieces) // 50 + 1]
    return len(some) > 10 and sum(_TIME.search(piece) is not None for piece in some) > 0.9 * len(some)


def _stride(pieces: Sequence[str], most: int) -> int:
    """Return which share of the lines to read, one of so many, to read about *most* characters."""
    return max(-(-(sum(map(len, pieces)) + len(pieces)) // most), 1)


# What is said of the whole


def _shape_of(text: str) -> list[str]:
    """Return the shape of a JSON value."""
    if text[:1] not in ("{", "[") or len(text) > _MOST_PARSED:
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [f"[Its shape: {shape}]" for shape in (_shape(value, 4)[: 4 * _PIECE],) if shape]


def _shape(value: Any, depth: int) -> str:
    match value:
        case dict() if depth:
            inner = ((_quoted(key), _shape(item, depth - 1)) for key, item in islice(value.items(), 40))
            more = [f"… {len(value) - 40:,} more"] if len(value) > 40 else []
            return "{" + ", ".join([*(f"{key}: {shape}" if shape else key for key, shape in inner), *more]) + "}"
        case list() if value and depth:
            return f"[{len(value):,} × {_shape(value[0], depth - 1) or type(value[0]).__name__}]"
        case dict() | list():
            return "{…}" if isinstance(value, dict) else "[…]"
    return ""


def _columns_of(lines: Sequence[str]) -> list[str]:
    """Return a summary of each column of a table."""
    first, *rest = lines[:: -(-len(lines) // 1_000)]
    separator = max(",\t;|", key=first.count)
    if not 0 < first.count(separator) <= min(map(str.count, rest[:3], separator * 3), default=0):
        return []
    try:
        header, *rows = csv.reader([first, *rest], delimiter=separator)
    except csv.Error:
        return []
    fitting = [row for row in rows if len(row) == len(header)]
    if not all(map(_is_title, header)) or len(rows) < 10 or len(fitting) < 0.9 * len(rows):
        return []
    count = len(lines) - 1 - lines.count("")
    seen = f", {len(fitting):,} of them seen" if count > 1.5 * len(fitting) else ""
    columns = "; ".join(map(_column, header, zip(*fitting, strict=True)))
    return [f"[{count:,} rows{seen}. {columns[: 3 * _PIECE]}]"]


def _is_title(cell: str) -> bool:
    """Return True for what may stand above a column: the first line of a log or of prose has other parts."""
    return len(cell.split()) < 6 and not re.match(r"[\s\"']*[\d{\[]", cell)


def _column(title: str, values: Sequence[str]) -> str:
    name, counts = _quoted(title), Counter(values)
    if len(counts) <= 6:
        most = ((_quoted(value[:20], beside=name), count) for value, count in counts.most_common())
        return f"{name}: {', '.join(f'{value} × {count}' for value, count in most)}"
    numbers = [float(value) for value in values if _NUMBERS.fullmatch(value.strip())]
    if len(numbers) < sum(map(bool, values)):
        return f"{name}: {len(counts)} values"
    return f"{name}: {min(numbers):g} to {max(numbers):g}"


def _quoted(text: str, beside: str = "") -> str:
    """Return a short text as it is, and a mark for one that should not stand in a line of ours."""
    return text if _QUOTABLE.fullmatch(text) and not holds_credential(f"{beside}: {text}") else "…"


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
    if not removed:
        return ""
    texts = [text_of(message) for message in reversed(removed) if message.made_as is None]
    earlier = [_taken_apart(message) for message in reversed(removed) if message.made_as is not None]
    # What stands for little is little: else, in a conversation of short messages, nothing would be gained.
    gained = count_text("\n".join(texts)) // _REMOVED_SHARE
    tokens = min(tokens, gained + sum(count_text(part) for parts in earlier for part in parts))
    # In a long list, or in data, a name says nothing.
    stay = "\n".join(line for message in stays for line in text_of(message).split("\n") if len(line) <= _PIECE)
    known = set(names.of(stay, most=None))
    read = _read(_pieces_of("\n".join([*texts, *(body for body, _ in earlier)])), names, {})
    lines = [
        (at, text, held if held.isdisjoint(known) else held - known)
        for at, text, held in read
        if held and not text.startswith(_LISTED)
    ]
    earlier_list = "\n".join(rest for _, rest in earlier)
    left = set[str]().union(*(held for _, _, held in lines)).union(names.of(earlier_list, most=None)) - known
    listed = sorted(left, key=lambda name: (-len(name), name))
    ranking = _Ranking(lines, frozenset(), lambda at, text: 1.0)
    if not listed:
        return ""

    def made(room: int) -> str:
        telling = ranking.fitting(int(room * (1 - _REMOVED_LIST)))
        shown = _names_of(telling)
        body = [_cut(line.text) for line in sorted(telling, key=lambda line: line.at)]
        left = room - sum(map(len, body)) - len(body)
        rest = _fitting((name for name in listed if name not in shown), left)
        return "\n".join([*body, f"{_LISTED}{' '.join(rest)}]"] if rest else body)

    sample = "\n".join([*(text for _, text, _ in lines[:500]), *listed[:500]])
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
