"""Whoever wants to know what a storage evicts, for as long as they live."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from types import MethodType

from holdfast.storage.tombstones import Eviction

__all__ = ["Watchers"]

logger = logging.getLogger(__name__)


class Watchers:
    """Tells of evictions: the *owner* always, others for as long as they live.

    One storage may serve many conversations, one after another, and is not to remember them all.
    """

    def __init__(self, owner: Callable[[Eviction], object] | None = None) -> None:
        self._watchers: list[Callable[[], Callable[[Eviction], object] | None]] = []
        if owner is not None:
            self._watchers.append(lambda: owner)

    def __bool__(self) -> bool:
        return bool(self._watchers)

    def add(self, on_evict: Callable[[Eviction], object]) -> None:
        """Call *on_evict* with each eviction from now on; a method only as long as somebody else holds its object."""
        self._watchers = [watcher for watcher in self._watchers if watcher() is not None]
        self._watchers.append(weakref.WeakMethod(on_evict) if isinstance(on_evict, MethodType) else lambda: on_evict)

    def tell(self, eviction: Eviction) -> None:
        """Tell everybody. A watcher's mistake is logged: it must not make a store that succeeded look failed."""
        for watcher in self._watchers:
            if (on_evict := watcher()) is None:
                continue
            try:
                on_evict(eviction)
            except Exception:
                logger.exception("on_evict failed for %s", eviction.reference)
