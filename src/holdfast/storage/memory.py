"""Contents kept in memory, forgotten after turns of disuse."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable
from dataclasses import dataclass

from holdfast.defaults import EVICT_AFTER_TURNS
from holdfast.errors import NotFoundError, SharedStorageError
from holdfast.storage.checks import check_range, check_reference, check_store, check_touch, require_positive
from holdfast.storage.liveness import LiveReferences, checked_live
from holdfast.storage.names import safe_key
from holdfast.storage.protocols import Entry, Part
from holdfast.storage.tombstones import Eviction, Tombstones
from holdfast.storage.watching import Watchers

__all__ = ["InMemoryStorage"]

_TOMBSTONES = 1_000


@dataclass(slots=True)
class _Held:
    key: str
    content: bytes
    content_type: str
    stored_at: float
    last_used: float
    last_turn: int


class InMemoryStorage:
    """Keeps contents in this process, for tests, serverless and short runs. Thread-safe.

    An entry that nobody stored or retrieved for more than *evict_after_turns* turns is gone, unless `set_live` says
    that it is still visible; None keeps everything. With eviction on, one storage serves one agent, whose turns it is
    told by `advance_turn`.
    """

    notes_uses = True

    def __init__(
        self, evict_after_turns: int | None = EVICT_AFTER_TURNS, *, clock: Callable[[], float] = time.time
    ) -> None:
        if evict_after_turns is not None:
            require_positive("evict_after_turns", evict_after_turns)
        self.evict_after_turns = evict_after_turns
        self.clock = clock
        self._turn = 0
        self._owner: object | None = None
        self._live = LiveReferences()
        self._lock = threading.Lock()
        # Both least recently used first. What is not visible grows old, and what a turn evicts is always at the front.
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._aging: OrderedDict[str, None] = OrderedDict()
        self._evicted = Tombstones(_TOMBSTONES)
        self._watchers = Watchers()
        # Starts anywhere, so that no reference of one storage leads somewhere in another.
        self._number = int.from_bytes(os.urandom(5), "big")

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Keep *content* under a reference ``mem_<n>_<key>``."""
        check_store(key, content, content_type)
        now = self.clock()
        with self._lock:
            self._number += 1
            reference = f"mem_{self._number}_{safe_key(key)}"
            self._held[reference] = _Held(key, content, content_type, now, now, self._turn)
            self._aging[reference] = None
        return reference

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and content type, and count this turn as the entry's last use."""
        held = self._use(reference)
        return held.content, held.content_type

    async def retrieve_range(self, reference: str, start: int, end: int) -> Part:
        """Return a part of the content, and count this turn as the entry's last use."""
        check_range(start, end)
        held = self._use(reference)
        return Part(held.content[start:end], held.content_type, start, len(held.content))

    async def inspect(self, reference: str) -> Entry:
        """Return what is known of one content, without counting it as used."""
        with self._lock:
            return _entry(reference, self._find(reference))

    async def touch(self, reference: str, used_at: float, content_type: str | None = None) -> None:
        """Note a use, and a new content type if one is given."""
        check_touch(used_at, content_type)
        with self._lock:
            held = None if reference == "" else self._held.get(check_reference(reference))
            if held is not None:
                held.last_used = max(held.last_used, used_at)
                held.content_type = content_type or held.content_type

    async def delete(self, reference: str) -> None:
        """Forget one entry."""
        self.discard(reference)

    def discard(self, reference: str) -> None:
        """Forget one entry."""
        with self._lock:
            self._held.pop(reference, None)
            self._aging.pop(reference, None)

    async def entries(self) -> AsyncIterator[Entry]:
        """Yield the entries held when the iteration began, least recently used first."""
        with self._lock:
            held = [_entry(reference, held) for reference, held in self._held.items()]
        for entry in held:
            yield entry

    def clear(self) -> Awaitable[None]:
        """Forget all entries, at once; awaiting the answer is optional."""
        with self._lock:
            self._held.clear()
            self._aging.clear()
        return _DONE

    def bind(self, owner: object) -> None:
        """Take *owner* as the agent that uses this storage. With eviction on, a second one is refused."""
        with self._lock:
            if self.evict_after_turns is None or self._owner is owner:
                return
            if self._owner is not None:
                raise SharedStorageError(
                    "this InMemoryStorage evicts by the turns of another agent, so a second agent cannot use it; "
                    "give each agent its own, or share one made with evict_after_turns=None"
                )
            self._owner = owner

    def watch(self, on_evict: Callable[[Eviction], object]) -> None:
        """Call *on_evict* with each eviction from now on. A method is held weakly, and ends with its object."""
        self._watchers.add(on_evict)

    def advance_turn(self) -> None:
        """Say that the agent's next turn begins, and drop what has been unused for too long."""
        with self._lock:
            self._turn += 1
            evictions = (
                [] if self.evict_after_turns is None else self._drop_unused_since(self._turn - self.evict_after_turns)
            )
        for eviction in evictions:
            self._watchers.tell(eviction)

    def set_live(self, references: Iterable[str], *, owner: object | None = None) -> None:
        """Say which references are visible in the conversation: these do not grow old.

        Where several say so, each is an *owner*, which is held weakly: what it said ends with it.
        """
        live = checked_live(references, owner)
        with self._lock:
            change = self._live.say(live, owner)
            self._let_age(change.went)
            self._keep_young(change.came)

    def _let_age(self, references: Iterable[str]) -> None:
        """Count the turns from now on: so far, these were visible."""
        for reference in references:
            if (held := self._held.get(reference)) is not None:
                held.last_turn = self._turn
                self._aging[reference] = None

    def _keep_young(self, references: Iterable[str]) -> None:
        for reference in references:
            self._aging.pop(reference, None)

    def _drop_unused_since(self, turn: int) -> list[Eviction]:
        evictions = []
        while self._aging and self._held[reference := next(iter(self._aging))].last_turn < turn:
            del self._aging[reference]
            evictions.append(self._eviction(reference, self._held.pop(reference)))
            self._evicted.add(evictions[-1])
        return evictions

    def _eviction(self, reference: str, held: _Held) -> Eviction:
        because = f"by turn {self._turn} nobody had used it for more than {self.evict_after_turns} turns"
        return Eviction(
            reference, held.key, held.content_type, len(held.content), held.stored_at, self.clock(), because
        )

    def _use(self, reference: str) -> _Held:
        now = self.clock()
        with self._lock:
            held = self._find(reference)
            held.last_used, held.last_turn = now, self._turn
            self._held.move_to_end(reference)
            if reference in self._aging:
                self._aging.move_to_end(reference)
            return held

    def _find(self, reference: str) -> _Held:
        held = self._held.get(check_reference(reference))
        if held is None:
            raise self._evicted.error(reference) or NotFoundError(
                reference, "nothing is held in memory under it: never stored here, deleted, or of an earlier process"
            )
        return held


def _entry(reference: str, held: _Held) -> Entry:
    return Entry(reference, held.key, held.content_type, len(held.content), held.stored_at, held.last_used)


class _Done:
    """What a method returns that is finished already but may be awaited like the others."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_DONE = _Done()
