"""The names under which records become spans and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["ATTRIBUTES", "COUNTERS", "METRICS", "Metric"]

# As the conventions advise for tokens and for the durations of operations.
_TOKENS = tuple(4.0**power for power in range(14))
_SECONDS = tuple(round(0.01 * 2**power, 2) for power in range(14))

ATTRIBUTES: Mapping[str, str] = {
    "gen_ai.operation.name": "`execute_tool`, where the agent opened or searched what left",
    "gen_ai.tool.name": "the tool that was called, or whose result left; on no metric",
    "gen_ai.tool.type": "`datastore`, with `execute_tool`",
    "gen_ai.tool.call.id": "the call whose result left, on an offload",
    "gen_ai.tool.call.arguments": "the query of a search, as JSON; only with `include_content`",
    "gen_ai.conversation.id": "the `conversation_id`, if one was given",
    "gen_ai.conversation.compacted": "true, on a reduction",
    "error.type": "the class of an error, `_OTHER` if nobody knows; `not_found` if a retrieval found nothing",
    "holdfast.record.kind": "reduction, offload, retrieval, search, eviction, failure or undo",
    "holdfast.record.number": "the number of the record in the ledger",
    "holdfast.turn": "the turn in which it happened",
    "holdfast.tokens.before": "tokens before: of all messages, or of the result that left",
    "holdfast.tokens.after": "tokens after, of the same",
    "holdfast.references": "where it is: up to 20 references; if they led nowhere only with `include_content`",
    "holdfast.references.count": "how many references there are",
    "holdfast.messages.removed": "messages that left, on a reduction",
    "holdfast.messages.rewritten": "messages that were rewritten, on a reduction",
    "holdfast.found": "whether there was anything to see, on a retrieval",
    "holdfast.undone": "the number of the reduction that was undone, if it is known",
    "holdfast.what": "what happened, in a line; only with `include_content`",
    "holdfast.why": "why, in a line; only with `include_content`",
    "holdfast.error": "the text of the error; only with `include_content`",
    "holdfast.context.moment": "`before` or `after`, on `holdfast.context.tokens`",
}
"""Every attribute of spans and metrics, and what it means."""


class Metric(NamedTuple):
    """An instrument by its unit and meaning; with *buckets* it is a histogram, else a counter."""

    unit: str
    meaning: str
    buckets: tuple[float, ...] | None = None


METRICS: Mapping[str, Metric] = {
    "holdfast.reductions": Metric("{reduction}", "times that history was made shorter"),
    "holdfast.offloads": Metric("{offload}", "large results that left"),
    "holdfast.retrievals": Metric("{retrieval}", "references that the agent opened"),
    "holdfast.searches": Metric("{search}", "searches of the agent in what left"),
    "holdfast.evictions": Metric("{eviction}", "times that a storage forgot something"),
    "holdfast.failures": Metric("{failure}", "things that could not be done"),
    "holdfast.undos": Metric("{undo}", "reductions that were undone"),
    "holdfast.context.tokens_removed": Metric("{token}", "tokens that left, by reductions and offloads"),
    "holdfast.context.tokens_returned": Metric("{token}", "tokens that came back, by undoing"),
    "holdfast.context.tokens": Metric("{token}", "all messages, before and after a reduction or an undo", _TOKENS),
    "holdfast.duration": Metric("s", "how long it took, where that was measured", _SECONDS),
}
"""Every metric."""

COUNTERS: Mapping[str, str] = {
    "reduction": "holdfast.reductions",
    "offload": "holdfast.offloads",
    "retrieval": "holdfast.retrievals",
    "search": "holdfast.searches",
    "eviction": "holdfast.evictions",
    "failure": "holdfast.failures",
    "undo": "holdfast.undos",
}
"""Which metric counts the records of a kind."""
