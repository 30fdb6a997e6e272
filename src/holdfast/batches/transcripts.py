"""A batch for reading: all of it as one text, or one message or part of it by its number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count, groupby, repeat

from holdfast.batches.batch import Batch, Entry
from holdfast.batches.chains import Link, Missing
from holdfast.batches.leaves import Leaf, leaves_of, says_something
from holdfast.errors import DamagedContentError, InvalidValueError, NotFoundError

__all__ = ["addressed", "all_of", "described", "holds", "holds_whole", "part_of", "parted", "transcript"]

_MOST_NAMED, _MOST_MISSING_NAMED = 20, 3
_PART = re.compile(r"(.+)#(s?\d{1,15}(?:\.\d{1,6})?)", re.DOTALL)


def parted(reference: str) -> tuple[str, str]:
    """Return the reference of a batch and the number of the message or part that is asked for, empty for all of it."""
    found = _PART.fullmatch(reference)
    return (reference, "") if found is None else (found[1], found[2])


def addressed(batch: Batch) -> Iterator[tuple[str, Entry]]:
    """Yield what can be opened, by its address: the number of a message, or ``s1`` for the first of holdfast's own."""
    own = count(1)
    for entry in batch.entries:
        if entry.number is not None:
            yield f"{entry.number}", entry
        elif says_something(entry, batch.dialect):
            yield f"s{next(own)}", entry


def transcript(links: Sequence[Link], earlier: str | None = None) -> bytes:
    """Return all that left with some batches, each after its reference, oldest first: as it was, part by part.

    *earlier* is the batch before them.
    """
    return b"\n".join(map(_bytes, (f"[{' '.join(_head(links, earlier))}]", *_lines_of(links))))


def _head(links: Sequence[Link], earlier: str | None) -> Iterator[str]:
    """Yield what a transcript is of: sentences."""
    left, shortened = _numbers(links)
    if left or not shortened:
        first, last = (left[0], left[-1]) if left else (0, 0)
        yield f"Messages {first}–{last} of this conversation, as they were when they left."
    if shortened:
        yield f"Messages that were only shortened, as they were before: {_some(map(str, shortened), _MOST_NAMED)}."
    if earlier is not None:
        yield f"What left before them is in {earlier} , if that is still there."


def _some(names: Iterable[str], most: int) -> str:
    named = list(names)
    more = len(named) - most
    others = f" and {more:,} other{'' if more == 1 else 's'}" if more > 0 else ""
    return f"{', '.join(named[:most])}{others}"


def _numbers(links: Iterable[Link]) -> tuple[list[int], list[int]]:
    """Return the numbers of messages that left, and of those of which only something did."""
    left: set[int] = set()
    shortened: dict[str, int] = {}
    for reference, entry, stays in _entries_of(links):
        if entry.number is None:
            continue
        whole = entry.original or f"{reference}#{entry.number}"
        if stays:
            shortened[whole] = entry.number
        else:
            # It may have had another number then.
            shortened.pop(whole, None)
            left.add(entry.number)
    return sorted(left), sorted(set(shortened.values()) - left)


def _entries_of(links: Iterable[Link]) -> Iterator[tuple[str, Entry, bool]]:
    """Yield each entry with the reference of its batch, and whether something of it stayed."""
    for reference, batch in links:
        if isinstance(batch, Batch):
            rewritten = chain.from_iterable(repeat(one.rewritten, one.taken) for one in batch.removals)
            for entry, stays in zip(batch.entries, chain(rewritten, repeat(False)), strict=False):
                yield reference, entry, stays


def part_of(reference: str, batch: Batch, number: str) -> tuple[bytes, str]:
    """Return a message or a part of one, as it is in a batch, and its content type.

    Raises NotFoundError if it is not there, and DamagedContentError if it is damaged.
    """
    message, _, place = number.partition(".")
    entry = _entry(reference, batch, _address(number))
    try:
        leaves = leaves_of(entry, batch.dialect)
    except InvalidValueError as error:
        raise DamagedContentError(f"message {message} of {reference} is damaged: {error}") from error
    if place and not 1 <= int(place) <= len(leaves):
        raise NotFoundError(f"{reference}#{number}", f"message {message} has {_parts(len(leaves))}")
    if not place and (len(leaves) != 1 or batch.has_lost(number)):
        return b"\n".join(map(_bytes, _lines(message, entry, batch, reference))), "text/plain"
    leaf = leaves[int(place or 1) - 1]
    if leaf.elsewhere:
        return f"[This is stored in {leaf.elsewhere}.]".encode(), "text/plain"
    return leaf.content, leaf.content_type


def _parts(count: int) -> str:
    return "1 part" if count == 1 else f"{count} parts, counted from 1"


def all_of(batch: Batch, number: str) -> tuple[str, str] | None:
    """Return the batch and the number under which all of a message is, if only a part of it is in this one."""
    entry = next(_entries_at(batch, _address(number)), None)
    if entry is None or entry.original is None:
        return None
    reference, message = parted(entry.original)
    _, dot, place = number.partition(".")
    return reference, f"{_address(message)}{dot}{place}"


def _entry(reference: str, batch: Batch, address: str) -> Entry:
    for entry in _entries_at(batch, address):
        return entry
    raise NotFoundError(f"{reference}#{address}", f"message {address} is not among those that left with {reference}")


def holds(batch: Batch, number: str) -> bool:
    """Say whether anything is in a batch of a message, or of the one that a part is of."""
    return any(True for _ in _entries_at(batch, _address(number)))


def holds_whole(batch: Batch, number: str) -> bool:
    """Say whether a message, or the one that a part is of, is in a batch as it was before anything was left out."""
    return any(map(_is_whole, _entries_at(batch, _address(number))))


def _entries_at(batch: Batch, address: str) -> Iterator[Entry]:
    if not address.isdecimal():
        return (entry for found_at, entry in addressed(batch) if found_at == address)
    # What others say takes far longer to find out.
    number = int(address)
    return (entry for entry in batch.entries if entry.number == number)


def _address(number: str) -> str:
    return number.partition(".")[0].lstrip("0") or "0"


def _is_whole(entry: Entry) -> bool:
    return entry.original is None and not entry.damage


def described(entry: Entry, leaf: Leaf) -> str:
    """Return what a part is, in a few words."""
    if entry.number is None:
        return "an earlier summary or marker"
    turn = f", turn {entry.turn}" if entry.turn else ""
    match leaf.role, leaf.kind:
        case "tool", "beside":
            return f"beside the result of {leaf.tool or 'a tool'}{turn}"
        case _, "beside":
            return f"beside what the {leaf.role} said{turn}"
        case "tool", _:
            return f"result of {leaf.tool or 'a tool'}{turn}"
        case _, "call":
            return f"{leaf.role} calls {leaf.tool}{turn}"
        case _, "reasoning":
            return f"{leaf.role}, reasoning{turn}"
    return f"{leaf.role or 'a part'}{turn}"


def _lines_of(links: Sequence[Link]) -> Iterator[str]:
    """Yield all lines, and where something is missing that and why."""
    whole: set[str] = set()
    for why, run in groupby(links, key=_why_missing):
        batches = list(run)
        if why is not None:
            yield f"[What left with {_some((name for name, _ in batches), _MOST_MISSING_NAMED)} {why}]"
        for reference, batch in batches:
            if isinstance(batch, Batch):
                yield from _lines_in(reference, batch, whole)


def _why_missing(link: Link) -> str | None:
    return link[1].why if isinstance(link[1], Missing) else None


def _lines_in(reference: str, batch: Batch, whole: set[str]) -> Iterator[str]:
    """Yield the lines of a batch, without what was left of a message that stands above as it was, in *whole*."""
    for address, entry in addressed(batch):
        if entry.original in whole:
            if _address(parted(entry.original)[1]) != address:
                yield f"[message {address} stands above, as {entry.original}]"
            continue
        if _is_whole(entry):
            whole.add(f"{reference}#{address}")
        yield from _lines(address, entry, batch, reference)


def _lines(address: str, entry: Entry, batch: Batch, reference: str) -> Iterator[str]:
    try:
        leaves = leaves_of(entry, batch.dialect)
    except InvalidValueError as error:
        what, leaves = "a summary or marker" if entry.number is None else f"message {address}", []
        yield f"[{what} is damaged and cannot be shown: {error}]"
    for place, leaf in enumerate(leaves, start=1):
        number = f"{address}.{place}" if len(leaves) > 1 else address
        message = "" if entry.number is None else f"message {number}, "
        yield f"[{message}{described(entry, leaf)}]"
        yield _shown(leaf, f"{reference}#{number}")
    if entry.original:
        yield f"[Of this message only a part was left by then; all of it: {entry.original}]"
    if batch.has_lost(address):
        yield "[Of this message only this was left by then; the rest could not be stored, and is lost]"
    if entry.changed_from:
        yield f"[This message was changed after a part of it was left out; as it was before: {entry.changed_from}]"


def _shown(leaf: Leaf, reference: str) -> str:
    if leaf.elsewhere:
        return f"[stored in {leaf.elsewhere}]"
    if (text := leaf.text) is None:
        return f"[{leaf.content_type}, {len(leaf.content):,} bytes: {reference}]"
    return text


def _bytes(line: str) -> bytes:
    return line.encode("utf-8", "surrogatepass")
