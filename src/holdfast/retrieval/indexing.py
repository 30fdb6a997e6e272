"""A search index over a conversation's contents, made while the model thinks."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

from holdfast.batches import BATCH_TYPE
from holdfast.errors import DamagedContentError, HoldfastError, StorageAccessError
from holdfast.media_types import essence
from holdfast.references import HISTORY, KnownReferences
from holdfast.retrieval.contents import WORKERS, StoredContents
from holdfast.retrieval.events import NotSearchable
from holdfast.retrieval.findable import Findable, findable_in
from holdfast.search import SearchAnswer, SearchIndex
from holdfast.search.locks import LockOfLoops

__all__ = ["Indexing", "Waiting"]

logger = logging.getLogger(__name__)

_MOST_WAITING = 64_000_000
# What is read from the storage at the same time. How large contents are, those before them tell.
_MOST_AT_ONCE, _BYTES_AT_ONCE = 8, 32_000_000
# A storage that does not answer is asked for one content after another no longer than that.
_SECONDS_IN_VAIN = 30.0
# What texts only claim to be stored, of which a search looks for so many.
_MOST_CLAIMS = 200


class Indexing:
    """Indexes what was stored, in the background; what nobody got around to is indexed when somebody searches."""

    def __init__(
        self,
        contents: StoredContents,
        known: KnownReferences,
        embedder: Any = None,
        *,
        on_event: Callable[[NotSearchable], None],
    ) -> None:
        self._contents = contents
        self._known = known
        self._embedder = embedder
        self._on_event = on_event
        self._index: SearchIndex | None = None
        # What the index has of each content: itself, or each part of each message in it.
        self._indexed: dict[str, list[str]] = {}
        # Batches that hold a part of messages, by those that hold them whole.
        self._leaning: dict[str, set[str]] = {}
        self._damaged: set[str] = set()
        self._unread: dict[str, HoldfastError] = {}
        # Messages that only a text claims, and how many other claims nobody has looked for.
        self._foreign: set[str] = set()
        self._unproven = 0
        self._lock, self._opening = LockOfLoops(), Lock()
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()
        self._waiting_bytes = 0
        self._task: asyncio.Task[None] | None = None

    def add(self, reference: str, waiting: Waiting) -> None:
        """Let a text be found. What waits too long in line is read from the storage again when it is needed."""
        self._waiting[reference] = waiting
        self._waiting_bytes += len(waiting.content)
        while self._waiting_bytes > _MOST_WAITING:
            self._take()

    def begin(self) -> None:
        """Begin to index what was added. This is a good moment for it: the model is about to be called."""
        if self._waiting and self._own_task() is None:
            self._task = asyncio.create_task(self._index_in_the_background())

    @property
    def damaged(self) -> int:
        """How many contents cannot be read as what they should be, wholly or in part."""
        return len(self._damaged)

    @property
    def unread(self) -> int:
        """How many contents the storage did not give when they were last asked for. The next search asks again."""
        return len(self._unread) + self._unproven

    async def catch_up(self) -> None:
        """Index all that is known, after a restart also what only the storage still has.

        What the storage does not give is left out. Raises what it says if that is everything.
        """
        while (task := self._own_task()) is not None:
            await asyncio.wait([task])
        # A task of its own, so that another search waits for it and a search that is given up does not stop it.
        self._task = asyncio.create_task(self._catch_up())
        await asyncio.shield(self._task)
        if self._unread and not any(self._indexed.values()):
            raise next(iter(self._unread.values()))

    async def search(self, query: str, limit: int, excerpt_characters: int) -> SearchAnswer:
        """Search in what is indexed by now."""
        return await self._opened().search(query, limit, excerpt_characters=excerpt_characters)

    async def forget(self, reference: str) -> None:
        """Let a content that is gone be found no more."""
        self._known.forget(reference)
        self._damaged.discard(reference)
        await self._opened().remove(self._indexed.pop(reference, ()))
        await self._let_go_of_those_leaning_on(reference)

    async def aclose(self) -> None:
        """Forget the index. A later search makes a new one."""
        self._waiting.clear()
        self._waiting_bytes = 0
        if (task := self._own_task()) is not None:
            await asyncio.wait([task])
        index, self._index = self._index, None
        self._indexed.clear()
        self._leaning.clear()
        self._damaged.clear()
        self._unread.clear()
        if index is not None:
            await index.aclose()

    def _own_task(self) -> asyncio.Task[None] | None:
        """Return what is under way in this event loop. What another loop began, and left, nobody waits for."""
        task = self._task
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    def _opened(self) -> SearchIndex:
        with self._opening:
            if self._index is None:
                self._index = SearchIndex(embedder=self._embedder)
            return self._index

    def _take(self) -> tuple[str, Waiting] | None:
        try:
            reference, waiting = self._waiting.popitem(last=False)
        except KeyError:
            return None
        self._waiting_bytes -= len(waiting.content)
        return reference, waiting

    async def _index_in_the_background(self) -> None:
        try:
            await self._index_waiting()
        except HoldfastError as error:
            logger.warning("what was offloaded cannot be searched: %s", error)

    async def _catch_up(self) -> None:
        await self._index_waiting()
        await self._remove_forgotten()
        before, self._unread = self._unread, {}
        # A batch of messages names others that nobody knew of.
        while missing := self._missing(self._known.stored):
            await self._index_all(missing)
        self._foreign.intersection_update(self._known.claimed)
        claimed = [known for known in self._missing(self._known.claimed) if known not in self._foreign]
        await self._index_all(claimed[:_MOST_CLAIMS])
        self._unproven = len(claimed[_MOST_CLAIMS:])
        if news := [reference for reference in self._unread if reference not in before]:
            logger.warning(
                "%d contents cannot be searched just now, the first of them %s: %s",
                len(news),
                news[0],
                self._unread[news[0]],
            )
            self._on_event(NotSearchable(tuple(news), self._unread[news[0]]))

    def _missing(self, references: Sequence[str]) -> list[str]:
        return [known for known in references if known not in self._indexed and known not in self._unread]

    async def _index_all(self, references: Sequence[str]) -> None:
        """Index what only the storage has, some at the same time. What cannot be read is noted."""
        clock = asyncio.get_running_loop().time
        place, at_once, in_vain = 0, _MOST_AT_ONCE, 0.0
        while place < len(references) and in_vain < _SECONDS_IN_VAIN:
            began = clock()
            group = references[place : place + at_once]
            found = await asyncio.gather(*map(self._stored, group))
            in_vain += clock() - began if self._unread.keys() >= set(group) else 0.0
            at_once = _at_once(found)
            place += len(group)
            for reference, waiting in zip(group, found, strict=True):
                if waiting is not None:
                    await self._index_content(reference, waiting)
        if place < len(references):
            why = next(reversed(self._unread.values()), StorageAccessError("the storage did not answer"))
            self._unread.update(dict.fromkeys(references[place:], why))

    async def _index_waiting(self) -> None:
        while (taken := self._take()) is not None:
            await self._index_content(*taken)

    async def _remove_forgotten(self) -> None:
        forgotten = [reference for reference in list(self._indexed) if reference not in self._known]
        for reference in forgotten:
            await self.forget(reference)

    async def _stored(self, reference: str) -> Waiting | None:
        """Return what the storage has; None if it is gone, or cannot be read just now."""
        try:
            return Waiting(*await self._contents.stored(reference))
        except KeyError:
            self._known.forget(reference)
            await self._let_go_of_those_leaning_on(reference)
        except HoldfastError as error:
            self._unread[reference] = error
        return None

    async def _let_go_of_those_leaning_on(self, reference: str) -> None:
        """Have batches indexed anew that hold what is left of messages whose whole is gone."""
        for leaning in self._leaning.pop(reference, ()):
            await self._opened().remove(self._indexed.pop(leaning, ()))

    async def _index_content(self, reference: str, waiting: Waiting) -> None:
        """Make a content findable, and what it names known."""
        async with self._lock:
            if reference not in self._known or reference in self._indexed:
                # Another event loop was faster.
                return
            if not self._known.is_stored(reference) and not self._proven(reference, waiting):
                return
            source = self._known.source_of(reference)
            found = await WORKERS.run(findable_in, reference, source, *waiting, self._known.is_gone)
            await self._opened().add_all(found.additions)
            # Not before: what is interrupted here is read from the storage the next time.
            self._indexed[reference] = [addition.reference for addition in found.additions]
        self._note(reference, found)

    def _proven(self, reference: str, waiting: Waiting) -> bool:
        """Say whether what a text claimed may be found: what it says of messages is believed of nobody."""
        if essence(waiting.content_type) == BATCH_TYPE:
            self._foreign.add(reference)
            return False
        self._known.add(reference, "")
        return True

    def _note(self, reference: str, found: Findable) -> None:
        if found.damage:
            self._damaged.add(reference)
            logger.warning("%s cannot be searched as a whole, it is damaged: %s", reference, found.damage)
            self._on_event(NotSearchable((reference,), DamagedContentError(found.damage)))
        for original in found.originals:
            self._leaning.setdefault(original, set()).add(reference)
        for earlier in found.before:
            self._known.learn(earlier, HISTORY)
        for named in found.claims:
            self._known.claim(named)


class Waiting(NamedTuple):
    """A content as it was stored."""

    content: bytes
    content_type: str


def _at_once(found: Sequence[Waiting | None]) -> int:
    """Return how many contents as large as these may be read at the same time."""
    largest = max((len(waiting.content) for waiting in found if waiting is not None), default=0)
    return max(min(_MOST_AT_ONCE, _BYTES_AT_ONCE // max(largest, 1)), 1)
