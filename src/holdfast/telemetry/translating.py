"""What a record is in the words of OpenTelemetry: pure functions, which need nothing of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from holdfast.ledger import (
    FailureRecord,
    OffloadRecord,
    Record,
    ReductionRecord,
    RetrievalRecord,
    SearchRecord,
    UndoRecord,
)
from holdfast.telemetry.names import COUNTERS

__all__ = [
    "Measurement",
    "attributes_of",
    "contents_of",
    "encodable",
    "is_error",
    "is_tool_call",
    "measurements_of",
    "name_of",
]

_NO_NAME, _NOT_FOUND = "_OTHER", "not_found"


class Measurement(NamedTuple):
    """A value for one metric."""

    metric: str
    value: float
    attributes: dict[str, Any]


def is_tool_call(record: Record) -> bool:
    """Say whether the agent did it itself, by a tool."""
    return isinstance(record, (RetrievalRecord, SearchRecord)) and bool(record.tool)


def name_of(record: Record) -> str:
    """Return the name of a record's span."""
    if isinstance(record, (RetrievalRecord, SearchRecord)) and is_tool_call(record):
        return f"execute_tool {record.tool}"
    return f"holdfast.{record.kind}"


def is_error(record: Record) -> bool:
    """Say whether a record's span has the status of an error."""
    return "error.type" in _own(record)


def attributes_of(record: Record) -> dict[str, Any]:
    """Return what may always be said of a record: sizes, numbers and names, and no text of the conversation."""
    found: dict[str, Any] = {
        "holdfast.record.kind": record.kind,
        "holdfast.record.number": record.number,
        "holdfast.turn": record.turn,
        "holdfast.tokens.before": record.tokens_before,
        "holdfast.tokens.after": record.tokens_after,
        **_own(record),
    }
    if record.references or record.more_references:
        found["holdfast.references.count"] = len(record.references) + record.more_references
    if not _led_nowhere(record):
        found.update(_references(record))
    return {name: value for name, value in found.items() if value is not None}


def contents_of(record: Record) -> dict[str, Any]:
    """Return what a record says in words, which may come from the conversation."""
    found: dict[str, Any] = {"holdfast.what": record.what, "holdfast.why": record.why}
    if isinstance(record, FailureRecord):
        found["holdfast.error"] = record.error
    if isinstance(record, SearchRecord) and is_tool_call(record):
        found["gen_ai.tool.call.arguments"] = json.dumps({"query": record.query}, ensure_ascii=False)
    if _led_nowhere(record):
        found.update(_references(record))
    return {name: said for name, said in found.items() if said}


def encodable(text: str) -> str:
    """Return a text without halves of surrogate pairs, which would cost the whole batch that an exporter sends."""
    return text.encode("utf-8", "replace").decode()


def measurements_of(record: Record) -> Iterator[Measurement]:
    """Yield what is measured; attributes are few and have few values, as metrics need it."""
    if is_tool_call(record) or not isinstance(record, SearchRecord):
        yield Measurement(COUNTERS[record.kind], 1, _own_of_metric(record))
    by_kind = {"holdfast.record.kind": record.kind}
    if record.seconds is not None:
        yield Measurement("holdfast.duration", record.seconds, by_kind)
    if record.saved > 0:
        yield Measurement("holdfast.context.tokens_removed", record.saved, by_kind)
    if record.saved < 0:
        yield Measurement("holdfast.context.tokens_returned", -record.saved, by_kind)
    if isinstance(record, (ReductionRecord, UndoRecord)):
        yield from _context(record, by_kind)


def _context(record: Record, by_kind: dict[str, Any]) -> Iterator[Measurement]:
    for moment, tokens in (("before", record.tokens_before), ("after", record.tokens_after)):
        if tokens is not None:
            yield Measurement("holdfast.context.tokens", tokens, {**by_kind, "holdfast.context.moment": moment})


def _led_nowhere(record: Record) -> bool:
    """Say whether the references are no more than what the model wrote."""
    return isinstance(record, RetrievalRecord) and not record.found


def _references(record: Record) -> dict[str, Any]:
    found = [encodable(reference) for reference in record.references]
    return {"holdfast.references": found} if found else {}


def _own_of_metric(record: Record) -> dict[str, Any]:
    # Not the tool: a server may bring any number of names, and each would be a series of its own.
    named = ("error.type", "holdfast.found")
    return {name: value for name, value in _own(record).items() if name in named}


def _own(record: Record) -> dict[str, Any]:
    """Return what only this kind of record has."""
    match record:
        case ReductionRecord():
            removed = {"holdfast.messages.removed": record.messages, "holdfast.messages.rewritten": record.rewritten}
            return {"gen_ai.conversation.compacted": True, **removed}
        case OffloadRecord():
            return {"gen_ai.tool.name": record.tool, "gen_ai.tool.call.id": encodable(record.call_id) or None}
        case RetrievalRecord():
            error = {} if record.found else {"error.type": _NOT_FOUND}
            return {**_tool(record.tool), "holdfast.found": record.found, **error}
        case SearchRecord():
            return _tool(record.tool) if record.tool else {}
        case FailureRecord():
            return {"error.type": record.error_type or _NO_NAME}
        case UndoRecord():
            return {"holdfast.undone": record.undone}
    return {}


def _tool(name: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "datastore"}
