"""Records by their kind, typed: who names a kind, by class or by word, gets records of that class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, overload

from holdfast.errors import InvalidValueError
from holdfast.ledger.records import (
    KINDS,
    EvictionRecord,
    FailureRecord,
    OffloadRecord,
    Record,
    ReductionRecord,
    RetrievalRecord,
    SearchRecord,
    UndoRecord,
)

__all__ = ["ByKind", "Subscribe", "class_of"]

_R = TypeVar("_R", bound=Record)
_End: TypeAlias = Callable[[], None]


def class_of(kind: object) -> Any:
    """Return the class of a kind, given as such or by its name; refuse what is none."""
    known = KINDS.get(kind) if isinstance(kind, str) else kind
    if isinstance(known, type) and issubclass(known, Record) and known is KINDS.get(known.kind):
        return known
    raise InvalidValueError(f"kind must be a class of records, or one of {', '.join(KINDS)}, got {kind!r:.80}")


class Subscribe(Protocol):
    """Has a callback called with each new record of a kind. What it returns ends that when called."""

    @overload
    def __call__(self, kind: type[_R], callback: Callable[[_R], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["*"], callback: Callable[[Record], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["reduction"], callback: Callable[[ReductionRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["offload"], callback: Callable[[OffloadRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["retrieval"], callback: Callable[[RetrievalRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["search"], callback: Callable[[SearchRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["eviction"], callback: Callable[[EvictionRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["failure"], callback: Callable[[FailureRecord], object]) -> _End: ...

    @overload
    def __call__(self, kind: Literal["undo"], callback: Callable[[UndoRecord], object]) -> _End: ...


class ByKind:
    """Finds records of one kind among those that are held, oldest first."""

    @property
    def _held(self) -> tuple[Any, ...]:
        raise NotImplementedError

    @overload
    def of(self, kind: type[_R]) -> tuple[_R, ...]: ...

    @overload
    def of(self, kind: Literal["reduction"]) -> tuple[ReductionRecord, ...]: ...

    @overload
    def of(self, kind: Literal["offload"]) -> tuple[OffloadRecord, ...]: ...

    @overload
    def of(self, kind: Literal["retrieval"]) -> tuple[RetrievalRecord, ...]: ...

    @overload
    def of(self, kind: Literal["search"]) -> tuple[SearchRecord, ...]: ...

    @overload
    def of(self, kind: Literal["eviction"]) -> tuple[EvictionRecord, ...]: ...

    @overload
    def of(self, kind: Literal["failure"]) -> tuple[FailureRecord, ...]: ...

    @overload
    def of(self, kind: Literal["undo"]) -> tuple[UndoRecord, ...]: ...

    def of(self, kind: Any) -> tuple[Any, ...]:
        """Return the records of one kind that are held, oldest first."""
        wanted = class_of(kind)
        return tuple(record for record in self._held if isinstance(record, wanted))

    @overload
    def last(self, kind: type[_R]) -> _R | None: ...

    @overload
    def last(self, kind: Literal["reduction"]) -> ReductionRecord | None: ...

    @overload
    def last(self, kind: Literal["offload"]) -> OffloadRecord | None: ...

    @overload
    def last(self, kind: Literal["retrieval"]) -> RetrievalRecord | None: ...

    @overload
    def last(self, kind: Literal["search"]) -> SearchRecord | None: ...

    @overload
    def last(self, kind: Literal["eviction"]) -> EvictionRecord | None: ...

    @overload
    def last(self, kind: Literal["failure"]) -> FailureRecord | None: ...

    @overload
    def last(self, kind: Literal["undo"]) -> UndoRecord | None: ...

    def last(self, kind: Any) -> Any:
        """Return the latest record of one kind, None if none is held."""
        held = self.of(class_of(kind))
        return held[-1] if held else None
