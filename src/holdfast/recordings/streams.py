"""A file as lines of bytes, unpacked if it is gzip, while somebody is told how far the reading came."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

from holdfast.recordings.sources import disk_reason
from holdfast.recordings.values import UnusableError

__all__ = ["Progress", "Stream", "joined", "lines_of", "opened"]

Stream = io.BufferedReader | gzip.GzipFile

_AT_ONCE = 1 << 17
# Of a file that is packed, a few bytes may stand for more than memory holds.
_LONGEST = 1 << 27
_GZIP = b"\x1f\x8b"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHERS = {
    b"\xff\xfe": "UTF-16, not UTF-8",
    b"\xfe\xff": "UTF-16, not UTF-8",
    b"\x28\xb5\x2f\xfd": "packed by zstd, and only gzip is unpacked",
    b"BZh": "packed by bzip2, and only gzip is unpacked",
    b"\xfd7zXZ": "packed by xz, and only gzip is unpacked",
    b"PK\x03\x04": "a zip archive, and only gzip is unpacked",
}


class _Counted(io.RawIOBase):
    """Passes on what a file gives, and says how many bytes of it."""

    def __init__(self, inner: io.RawIOBase, count: Callable[[int], None]) -> None:
        super().__init__()
        self._inner, self._count = inner, count

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        read = self._inner.readinto(buffer) or 0
        self._count(read)
        return read


class Progress:
    """Counts what is read of a source, and tells of it between lines, where whoever is told may raise anything."""

    def __init__(self, told: Callable[[int], None] | None) -> None:
        self._told = told
        self._read = self._known = 0

    def count(self, read: int) -> None:
        """Say that so many more bytes were read."""
        self._read += read

    def tell(self) -> None:
        """Tell of what was read since the last time."""
        new, self._known = self._read - self._known, self._read
        if new and self._told is not None:
            self._told(new)

    def finish(self, size: int) -> None:
        """Tell of all of *size*, also where reading ended early."""
        self._read = max(self._read, size)
        self.tell()


@contextmanager
def opened(path: str, progress: Progress) -> Iterator[Stream]:
    """Open a file, and unpack it if its first bytes say gzip."""
    with ExitStack() as stack:
        raw = stack.enter_context(open(path, "rb", buffering=0))
        counted: Any = _Counted(raw, progress.count)
        stream = stack.enter_context(io.BufferedReader(counted, _AT_ONCE))
        is_packed = stream.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        # With nothing around it: where it is cut off, a buffer would lose the lines before.
        yield stack.enter_context(gzip.GzipFile(fileobj=stream)) if is_packed else stream


def lines_of(stream: Stream, progress: Progress) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with anything in them, and their numbers. Where a file breaks off, raises an UnusableError."""
    for number in count(1):
        line = _next_line(stream, number)
        progress.tell()
        if not line:
            return
        if not line.isspace():
            yield number, line


def joined(lines: Iterable[tuple[int, bytes]]) -> bytes:
    """Return numbered lines as the one text that they are, and an empty line for each number that is left out."""
    text, due = bytearray(), 1
    for number, line in lines:
        if len(text) + number - due + len(line) > _LONGEST:
            raise _too_long("one value", number)
        text += b"\n" * (number - due) + line
        due = number + 1
    return bytes(text)


def _next_line(stream: Stream, number: int) -> bytes:
    line = _read_line(stream, number)
    if len(line) > _LONGEST:
        raise _too_long("one line", number)
    return line


def _too_long(what: str, number: int) -> UnusableError:
    most = f"{_LONGEST >> 20} MiB"
    return UnusableError(f"{what} of more than {most}, and the rest is not read; write one conversation a line", number)


def _read_line(stream: Stream, number: int) -> bytes:
    try:
        if number > 1:
            return stream.readline(_LONGEST + 1)
        _check_kind(stream.peek(8))
        return stream.readline(_LONGEST + 1).removeprefix(_BYTE_ORDER_MARK)
    except EOFError:
        raise UnusableError("the gzip file is cut off here", number) from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UnusableError(f"the gzip file is damaged here: {error}", number) from None
    except OSError as error:
        raise UnusableError(disk_reason(error), number) from None


def _check_kind(beginning: bytes) -> None:
    for magic, told in _OTHERS.items():
        if beginning.startswith(magic):
            raise UnusableError(f"it is {told}")
