"""Who is told of new records."""

from __future__ import annotations

import inspect
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from holdfast.checks import check_told, is_async
from holdfast.errors import InvalidTypeError
from holdfast.ledger.records import Record

__all__ = ["Subscribers"]

logger = logging.getLogger(__name__)

_MOST = 100


class _Subscriber:
    """One callback, until it is *ended*."""

    def __init__(self, kind: type[Record], callback: Callable[[Any], object]) -> None:
        self.kind = kind
        self.ended = False
        self._callback = callback

    def tell(self, record: Record) -> None:
        try:
            self._call(record)
        except Exception:
            # Whoever watches must not stop whoever works.
            logger.exception("a callback failed for a record of %s", record.kind)

    def _call(self, record: Record) -> None:
        if inspect.iscoroutine(answer := self._callback(record)):
            answer.close()
            raise InvalidTypeError("the callback returned a coroutine, which nobody awaits")


class _Round:
    """One record, and what callbacks add while it is told, each with those who brought it about.

    They are not told of it, nor is anybody of more than 100 that were added: else some callbacks would never end.
    """

    def __init__(self, record: Record) -> None:
        self._waiting: deque[tuple[Record, frozenset[_Subscriber]]] = deque([(record, frozenset())])
        self._because: frozenset[_Subscriber] = frozenset()
        self._added = 0

    def add(self, record: Record) -> None:
        self._added += 1
        if self._added <= _MOST:
            self._waiting.append((record, self._because))

    def tell(self, subscribers: list[_Subscriber]) -> None:
        while self._waiting:
            record, because = self._waiting.popleft()
            for subscriber in tuple(subscribers):
                if isinstance(record, subscriber.kind) and not subscriber.ended and subscriber not in because:
                    self._because = because | {subscriber}
                    subscriber.tell(record)
        if self._added > _MOST:
            untold = f"{self._added - _MOST:,}"
            logger.warning("callbacks added too many records; in the ledger, but told to nobody: %s", untold)


class Subscribers:
    """Callbacks, told in the order in which they came."""

    def __init__(self) -> None:
        self._all: list[_Subscriber] = []
        # By thread, as what another one adds meanwhile is nobody's answer.
        self._rounds: dict[int, _Round] = {}

    def add(self, kind: type[Record], callback: Callable[[Any], object]) -> Callable[[], None]:
        """Tell *callback* of each record of that kind, until what is returned is called."""
        if callback is None:
            raise InvalidTypeError("callback must be callable, got None")
        if is_async(callback):
            raise InvalidTypeError(
                "callback must be a plain function, got an async one, which nobody would await; let a plain one start "
                "it: lambda record: tasks.add(asyncio.create_task(told(record)))"
            )
        check_told("callback", callback)
        subscriber = _Subscriber(kind, callback)
        self._all.append(subscriber)

        def unsubscribe() -> None:
            subscriber.ended = True
            if subscriber in self._all:
                self._all.remove(subscriber)

        return unsubscribe

    def tell(self, record: Record) -> None:
        """Tell whoever wants to know; what is added meanwhile is told after."""
        here = threading.get_ident()
        if here in self._rounds:
            self._rounds[here].add(record)
            return
        self._rounds[here] = _Round(record)
        try:
            self._rounds[here].tell(self._all)
        finally:
            del self._rounds[here]
