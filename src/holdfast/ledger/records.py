"""What a ledger holds: one frozen record for each thing that happened to a context."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.ledger.checks import checked_number, checked_references, checked_seconds, checked_text

__all__ = [
    "KINDS",
    "EvictionRecord",
    "FailureRecord",
    "OffloadRecord",
    "Record",
    "ReductionRecord",
    "RetrievalRecord",
    "SearchRecord",
    "UndoRecord",
    "record_from",
]

_LINE, _QUERY, _NAME = 300, 200, 200


def _text(most: int, **options: Any) -> Any:
    return field(metadata={"most": most}, **options)


@dataclass(frozen=True, kw_only=True)
class Record:
    """One thing that happened: at *at* seconds since the epoch, in *turn*, within *seconds* if somebody measured.

    Tokens are estimates, None where nobody knows. Texts become one line and are cut, which a "…" says. Of references
    the first 20 are kept, each whole; *more_references* says how many others there are.
    """

    kind: ClassVar[str] = ""

    number: int
    at: float
    turn: int
    why: str = _text(_LINE, default="")
    what: str = _text(_LINE, default="")
    tokens_before: int | None = None
    tokens_after: int | None = None
    references: tuple[str, ...] = ()
    more_references: int = 0
    seconds: float | None = None

    def __post_init__(self) -> None:
        checked_number("number", self.number, at_least=1)
        checked_number("turn", self.turn)
        checked_seconds("at", self.at)
        if self.seconds is not None:
            checked_seconds("seconds", self.seconds)
        for name in ("tokens_before", "tokens_after"):
            if getattr(self, name) is not None:
                checked_number(name, getattr(self, name))
        self._keep_references(self.references, self.more_references)
        for known in fields(self):
            if "most" in known.metadata:
                self._set(known.name, checked_text(known.name, getattr(self, known.name), known.metadata["most"]))

    @property
    def saved(self) -> int:
        """By how many tokens the context became smaller, if that is known; below zero where something came back."""
        if self.tokens_before is None or self.tokens_after is None:
            return 0
        return self.tokens_before - self.tokens_after

    def as_json(self, *, brief: bool = False) -> dict[str, Any]:
        """Return it as plain data, from which `record_from` makes it again; *brief* without what is as usual."""
        values = {known.name: getattr(self, known.name) for known in fields(self)}
        told = {**values, "references": list(self.references)}
        if brief:
            usual = {known.name: known.default for known in fields(self)}
            told = {name: value for name, value in told.items() if values[name] != usual[name]}
        return {"kind": self.kind, **told}

    def _keep_references(self, given: Collection[str], others: int) -> None:
        kept = checked_references("references", given)
        self._set("references", kept)
        self._set("more_references", checked_number("more_references", others) + len(given) - len(kept))

    def _set(self, name: str, value: object) -> None:
        # Frozen for everybody else.
        object.__setattr__(self, name, value)


@dataclass(frozen=True, kw_only=True)
class ReductionRecord(Record):
    """Messages left the window, or were rewritten in it.

    Tokens are of all messages, without system prompt and tools.
    """

    kind: ClassVar[str] = "reduction"

    messages: int = 0
    rewritten: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_number("messages", self.messages)
        checked_number("rewritten", self.rewritten)


@dataclass(frozen=True, kw_only=True)
class OffloadRecord(Record):
    """A large result of *tool* left the window, that of the call *call_id* if that is known.

    Tokens are of the result, not of the context.
    """

    kind: ClassVar[str] = "offload"

    tool: str = _text(_NAME)
    call_id: str = _text(_NAME, default="")


@dataclass(frozen=True, kw_only=True)
class RetrievalRecord(Record):
    """The agent opened a reference with *tool*. *found* says whether there was anything to see.

    If not, the reference is whatever the model wrote.
    """

    kind: ClassVar[str] = "retrieval"

    tool: str = _text(_NAME, default="retrieve_offloaded_content")
    found: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.found, bool):
            raise InvalidTypeError(f"found must be True or False, got {type(self.found).__name__}")


@dataclass(frozen=True, kw_only=True)
class SearchRecord(Record):
    """The agent searched with *tool* in what left, or the program if that is empty.

    The references are what was found.
    """

    kind: ClassVar[str] = "search"

    tool: str = _text(_NAME, default="search_context")
    query: str = _text(_QUERY)


@dataclass(frozen=True, kw_only=True)
class EvictionRecord(Record):
    """A storage forgot something, as its policies say. The references lead nowhere from now on."""

    kind: ClassVar[str] = "eviction"


@dataclass(frozen=True, kw_only=True)
class FailureRecord(Record):
    """Something could not be done. *error* is the text of it, or the exception, whose name becomes *error_type*."""

    kind: ClassVar[str] = "failure"

    error: str = _text(_LINE)
    error_type: str = _text(_NAME, default="")

    def __post_init__(self) -> None:
        if isinstance(self.error, BaseException):
            self._set("error_type", self.error_type or type(self.error).__name__)
            self._set("error", _message_of(self.error))
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class UndoRecord(Record):
    """What a reduction removed came back; *undone* is the number of its record, the earliest if several came back.

    It is None where that record is no longer known; the references are those of the reductions all the same. Tokens are
    of all messages, without system prompt and tools.
    """

    kind: ClassVar[str] = "undo"

    undone: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.undone is not None:
            checked_number("undone", self.undone, at_least=1)


KINDS: Mapping[str, type[Record]] = {
    known.kind: known
    for known in (
        ReductionRecord,
        OffloadRecord,
        RetrievalRecord,
        SearchRecord,
        EvictionRecord,
        FailureRecord,
        UndoRecord,
    )
}


def record_from(given: object) -> Record:
    """Make a record from what `as_json` returned. Whatever became of that since, the worst is an InvalidValueError.

    Fields that are not known, as another version may have them, are left out.
    """
    if not isinstance(given, Mapping):
        raise InvalidValueError(f"a record must be a mapping, got {type(given).__name__}")
    kind = given.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        got = repr(kind[:80]) if isinstance(kind, str) else type(kind).__name__
        raise InvalidValueError(f"a record's kind must be one of {', '.join(KINDS)}, got {got}")
    values = {known.name: given[known.name] for known in fields(KINDS[kind]) if known.name in given}
    try:
        return KINDS[kind](**values)
    except (TypeError, InvalidValueError) as error:
        raise InvalidValueError(f"a record of {kind} cannot be read: {error}") from error


def _message_of(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:
        # Somebody else's exception, whose words fail too.
        return type(error).__name__
