"""What a storage is, and what more it may offer.

`Storage` is all that is ever required. Each further verb is a protocol of its own; test for it with
``isinstance(storage, SupportsDelete)``, or with `offers` where wrappers may be involved.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from holdfast.storage.tombstones import Eviction

__all__ = [
    "Entry",
    "Part",
    "Storage",
    "SupportsClear",
    "SupportsDelete",
    "SupportsDiscard",
    "SupportsEntries",
    "SupportsEvict",
    "SupportsInspect",
    "SupportsLive",
    "SupportsRange",
    "SupportsTouch",
    "SupportsTurns",
    "SupportsWatch",
    "offers",
]


@dataclass(frozen=True, slots=True)
class Entry:
    """What a storage knows of one stored content. Times are seconds since the epoch."""

    reference: str
    key: str
    content_type: str
    size: int
    stored_at: float
    last_used: float


@dataclass(frozen=True, slots=True)
class Part:
    """A byte range of a stored content, and the size of the whole."""

    content: bytes
    content_type: str
    start: int
    total_size: int

    @property
    def end(self) -> int:
        """The offset behind the last byte, where the next part starts."""
        return self.start + len(self.content)


@runtime_checkable
class Storage(Protocol):
    """Keeps contents outside the model's window, each behind a reference."""

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Keep *content* and return a new reference to it, also when *key* was used before.

        When this returns, the content is stored. When it raises, nothing was; only if it is cancelled, or a network
        fails meanwhile, the content may be there without anybody holding its reference.
        """
        ...

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type. Raises KeyError if the reference leads to nothing."""
        ...


@runtime_checkable
class SupportsDelete(Protocol):
    """Can forget one content."""

    async def delete(self, reference: str) -> None:
        """Forget what *reference* leads to. Quiet if it leads to nothing."""
        ...


@runtime_checkable
class SupportsDiscard(Protocol):
    """Can forget one content at once, because there is no disk and no network to wait for."""

    def discard(self, reference: str) -> None:
        """Forget what *reference* leads to. Quiet if it leads to nothing."""
        ...


@runtime_checkable
class SupportsEntries(Protocol):
    """Can say what it holds."""

    def entries(self) -> AsyncIterator[Entry]:
        """Yield every entry, in no promised order. What comes or goes meanwhile may be missed."""
        ...


@runtime_checkable
class SupportsEvict(Protocol):
    """Can forget several contents and tell why to whoever asks for them later."""

    async def evict(self, references: Collection[str], because: str) -> None:
        """Forget what *references* lead to, *because* of a reason that reads on as a sentence. Quiet about strays."""
        ...


@runtime_checkable
class SupportsInspect(Protocol):
    """Can say what it holds under one reference."""

    async def inspect(self, reference: str) -> Entry:
        """Return the entry, under the reference that `store` gave. Does not count as use. Raises KeyError."""
        ...


@runtime_checkable
class SupportsLive(Protocol):
    """Spares what the conversation that it serves still shows."""

    def set_live(self, references: Iterable[str]) -> None:
        """Say which references are visible; say it again whenever that changes.

        A storage that may serve several conversations takes a keyword *owner* too: an object for each of them, held
        weakly, so that what it said ends with it. None is one owner like the others.
        """
        ...


@runtime_checkable
class SupportsRange(Protocol):
    """Can read a part without reading the whole."""

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return bytes *start* up to, not including, *end*; fewer, or none, if the content is shorter."""
        ...


@runtime_checkable
class SupportsTouch(Protocol):
    """Can write down a use, for the next process that asks."""

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use at *used_at*, unless a later one is noted, and the content type from now on, if one is given.

        Quiet if *reference* leads to nothing.
        """
        ...


@runtime_checkable
class SupportsTurns(Protocol):
    """Counts the turns of the conversation that it serves."""

    def advance_turn(self) -> None:
        """Say that the next turn begins."""
        ...


@runtime_checkable
class SupportsWatch(Protocol):
    """Can say what it evicts."""

    def watch(self, on_evict: Callable[[Eviction], object]) -> None:
        """Call *on_evict* with each eviction from now on. A method is held weakly, and ends with its object."""
        ...


@runtime_checkable
class SupportsClear(Protocol):
    """Can forget everything."""

    def clear(self) -> Awaitable[None]:
        """Forget all entries, when awaited at the latest."""
        ...


def offers(storage: object, verb: type) -> bool:
    """Say whether *storage* and all that it wraps as `inner` have *verb*, one of the protocols here."""
    return isinstance(storage, verb) and (not hasattr(storage, "inner") or offers(storage.inner, verb))
