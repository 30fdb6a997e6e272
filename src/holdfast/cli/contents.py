"""Bytes of a content on their way to the standard output, which may be a terminal."""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import AsyncIterator, Iterable, Iterator

import click

from holdfast.storage import Part, SupportsRange

__all__ = ["ByteRange", "for_a_terminal", "parts_of"]

_STEP = 8_000_000
_RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})?")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f]")


class ByteRange(click.ParamType):  # type: ignore[type-arg]
    """An option's value START-END, END not included and optional, as a pair of offsets."""

    name = "range"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return the pair."""
        found = _RANGE.fullmatch(str(value))
        start, end = (int(found[1]), int(found[2] or sys.maxsize)) if found else (1, 0)
        if start > end:
            self.fail(f"a range looks like 0-1000 or 1000-, with START up to END, got {value!r}", param, ctx)
        return start, end


async def parts_of(storage: SupportsRange, reference: str, start: int, end: int) -> AsyncIterator[Part]:
    """Yield a content in parts of some megabytes; at least one, which may be empty."""
    while True:
        part = await storage.retrieve_range(reference, start, min(end, start + _STEP))
        yield part
        start, end = part.end, min(end, part.total_size)
        if start >= end:
            return


def for_a_terminal(parts: Iterable[Part]) -> Iterator[Part]:
    """Yield *parts* as long as they are text that no terminal takes for commands."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for part in parts:
        if not _is_plain_text(decoder, part):
            raise click.ClickException(
                f"this is {part.content_type} with bytes that a terminal may take for commands; "
                "send it to a file or a pipe, or add --force"
            )
        yield part


def _is_plain_text(decoder: codecs.IncrementalDecoder, part: Part) -> bool:
    try:
        return not _CONTROL.search(decoder.decode(part.content, final=part.end >= part.total_size))
    except UnicodeDecodeError:
        return False
