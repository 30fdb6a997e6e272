"""Which facts are still needed: those of what leaves that are referred to by what stays."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.compression.fact_texts import Said, said_in
from holdfast.compression.facts import WORD, Found, Place, facts_in, looked_at
from holdfast.compression.furniture import names_a_batch
from holdfast.messages import Message

__all__ = ["Leaving", "ReferredFact", "WholeTokens", "leaving_from", "referred_facts"]

_ESCAPE_OR_WORD = rf"\\[nrt](?=[{WORD}])|[{WORD}]+|\w"
_FIRST_WORD = re.compile(rf"[{WORD}]+|\w")
_IS_WORD = re.compile(rf"[{WORD}]")
_JOINED_BEFORE = re.compile(rf"[{WORD}][-./@\\]")
_GOES_ON = re.compile(rf"(?!\\[nrt])(?:[{WORD}]|(?P<joined>[-./@\\][{WORD}]))")
# A name is the same one before a dot, too.
_NAME_GOES_ON = re.compile(rf"(?!\.{{0,3}}\\[nrt])(?:[{WORD}]|(?P<joined>\.{{0,3}}[-/@\\][{WORD}]))")
_THOUSANDS_BEFORE, _THOUSANDS_AFTER = re.compile(r"\d,"), re.compile(r",\d{3}(?!\d)")
_ESCAPES = ("\\n", "\\r", "\\t")
_BARE_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# How often a plain word may stand in what leaves to be more than a word where it is quoted.
_SELDOM = 3
# Letters of a code, such as the one of a booking, where they are quoted: it is one however often it is named.
_CODE = re.compile(r"[A-Z]{5,}")


class Leaving(NamedTuple):
    """What messages say that are about to leave, and what the ones say that stay."""

    said: Sequence[Said]
    stays: Sequence[str]


class ReferredFact(NamedTuple):
    """A fact of what leaves: the text in which it stood last, from where on, and whose text that is ("" if known).

    *references* is how many parts of what stays hold it, *times* how often it stood in what leaves. One that
    *is_listed* stood nowhere but in the list behind an earlier summary.
    """

    value: str
    text: str
    at: int
    source: str
    references: int
    times: int
    is_listed: bool = False


class WholeTokens:
    """Finds values in texts where they stand for themselves, not as a part of a longer name, path or number.

    All of them are looked for at once: it takes as long as the text is, however many values there are.
    """

    def __init__(self, values: Iterable[str]) -> None:
        alike: dict[tuple[str, bool], list[str]] = {}
        for value in sorted({value for value in values if value}):
            alike.setdefault((_first_piece(value), value.isidentifier()), []).append(value)
        self._alike: dict[str, list[_Alike]] = {}
        for (first, are_names), ordered in alike.items():
            self._alike.setdefault(first, []).append(_Alike(ordered, are_names))
        marks = {first for first in self._alike if not _FIRST_WORD.match(first)}
        self._pieces = re.compile("|".join([_ESCAPE_OR_WORD, *map(re.escape, sorted(marks))]))

    def in_text(self, text: str, start: int = 0, stop: int | None = None) -> set[str]:
        """Return the values that a text holds."""
        held: set[str] = set()
        # Values that are held already, as are all that they begin with.
        settled: set[str] = set()
        for piece in self._pieces.finditer(text, start, len(text) if stop is None else stop):
            for alike in self._alike.get(piece[0], ()):
                at = piece.start()
                found = alike.beginning_at(at, text)
                if found and found[-1] not in settled:
                    held.update(value for value in found if value not in held and alike.ends(text, at, value))
                    if held.issuperset(found):
                        settled.add(found[-1])
        return held

    def counts(self, texts: Iterable[str]) -> Counter[str]:
        """Return in how many of *texts* each value stands; of long ones, the head and the tail are looked at."""
        held: dict[int, set[str]] = {}
        for number, text, start, stop in looked_at(texts):
            held.setdefault(number, set()).update(self.in_text(text, start, stop))
        return Counter(value for values in held.values() for value in values)


class _Alike:
    """Values that begin with the same word or mark, in order; either all are names, or none is."""

    def __init__(self, ordered: Sequence[str], are_names: bool) -> None:
        self._ordered, self._are_names = ordered, are_names
        self._chains = list(_chains(ordered))
        self._longest = max(map(len, ordered))

    def beginning_at(self, at: int, text: str) -> Sequence[str]:
        """Return the values that the text goes on with from there, the longest last; none if they would be a part."""
        if not _can_begin(text, at, self._are_names):
            return ()
        # All of them begin the last value that does not come after the text in order, or are that value.
        number = bisect_right(self._ordered, text[at : at + self._longest]) - 1
        if number < 0:
            return ()
        chain = self._chains[number]
        return chain[: bisect_left(chain, True, key=lambda value: not text.startswith(value, at))]

    def ends(self, text: str, at: int, value: str) -> bool:
        """Say whether a value that begins there is not a part of something longer."""
        end = at + len(value)
        goes_on = (_NAME_GOES_ON if self._are_names else _GOES_ON).match(text, end)
        if goes_on and (goes_on.lastgroup == "joined" or _IS_WORD.match(value, len(value) - 1)):
            return False
        if len(value) != 3 or not value.isdigit():
            return True
        return not (_THOUSANDS_BEFORE.match(text, max(at - 2, 0), at) or _THOUSANDS_AFTER.match(text, end))


def _chains(ordered: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield, for each value, the values that it begins with, and itself as the last."""
    chain: list[str] = []
    for value in ordered:
        while chain and not value.startswith(chain[-1]):
            chain.pop()
        chain.append(value)
        yield tuple(chain)


def _first_piece(value: str) -> str:
    word = _FIRST_WORD.match(value)
    return value[0] if word is None else word[0]


def leaving_from(leaving: Iterable[Message], known: str, staying: Iterable[Message], *, listed: str = "") -> Leaving:
    """Return what is said. *known* is what an earlier summary says, *listed* what is listed behind it.

    What holdfast itself put there does not count.
    """
    said = list(said_in(message for message in leaving if message.made_as is None))
    stays = said_in(message for message in staying if message.made_as is None)
    given = [part for part in said if part.is_input]
    heard = [part for part in said if not part.is_input]
    # What a tool was given says least about a fact, so it comes first: where a fact stood last is what counts.
    earlier = [Said("", known), Said("", _one_by_one(listed), is_list=True)]
    return Leaving([*given, *(part for part in earlier if part.text), *heard], [part.text for part in stays])


def _one_by_one(listed: str) -> str:
    """Return the lines of a list; if the last one only names facts, each in a line of its own, as one may go alone."""
    lines, newline, last = listed.rpartition("\n")
    names, facts = last.removeprefix("- ").split(", "), facts_in([last])
    only_names = all(name in facts or name[1:-1] in facts for name in names)
    return lines + newline + "\n".join(names) if only_names else listed


def referred_facts(leaving: Leaving) -> list[ReferredFact]:
    """Return the facts that are referred to by what stays: those most referred to, and of these the rarest, first.

    Numbers that say nothing of what they count come behind all others.
    """
    texts = [said.text for said in leaving.said]
    found = {value: places for value, places in facts_in(texts).items() if not names_a_batch(value)}
    counts = WholeTokens(found).counts(leaving.stays)
    common = _common_words(texts, counts)
    facts = [_referred(value, found[value], leaving, count) for value, count in counts.items() if value not in common]
    return sorted(facts, key=lambda fact: _rank(fact, found[fact.value].first))


def _rank(fact: ReferredFact, first: Place) -> tuple[bool, int, int, Place, str]:
    is_bare = _BARE_NUMBER.fullmatch(fact.value) is not None
    return is_bare, -fact.references, fact.times, first, fact.value


def _referred(value: str, found: Found, leaving: Leaving, references: int) -> ReferredFact:
    said = leaving.said[found.last.text]
    at = max(said.text.find(value, found.last.at), 0)
    is_listed = said.is_list and found.first.text == found.last.text
    return ReferredFact(value, said.text, at, said.source, references, found.times, is_listed)


def _common_words(texts: Iterable[str], values: Iterable[str]) -> set[str]:
    """Return those values that are words like any other: a quoted "name" among many names is no fact."""
    words = {value for value in values if value.isalpha() and not _CODE.fullmatch(value)}
    if not words:
        return words
    times = Counter(
        word[0]
        for _, text, start, stop in looked_at(texts)
        for word in _FIRST_WORD.finditer(text, start, stop)
        if word[0] in words
    )
    return {word for word, count in times.items() if count > _SELDOM}


def _can_begin(text: str, at: int, is_name: bool) -> bool:
    before = text[max(at - 2, 0) : at]
    if not before or before in _ESCAPES:
        return True
    if _IS_WORD.match(before, len(before) - 1) and _IS_WORD.match(text, at):
        return False
    # A name is the same one behind a dot: `order.total_price`.
    return (is_name and before[-1] == ".") or not _JOINED_BEFORE.match(before)
