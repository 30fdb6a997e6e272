"""The report on a conversation that goes on."""

from __future__ import annotations

from holdfast.budget import Budget
from holdfast.compression import ContextCompression, protected_in
from holdfast.defaults import WINDOW
from holdfast.dialects import Dialect
from holdfast.history import History
from holdfast.hooks import Conversation
from holdfast.ledger import Ledger
from holdfast.references import KnownReferences
from holdfast.reports.making import report_of
from holdfast.reports.values import ContextReport

__all__ = ["report_on"]


def report_on(
    conversation: Conversation,
    ledger: Ledger,
    *,
    compression: ContextCompression | None,
    known: KnownReferences | None,
    dialect: Dialect | None,
) -> ContextReport:
    """Say what is in a conversation; *known* are the references that it may show."""
    history, budget, request = _measured(conversation, compression, dialect)
    return report_of(
        history,
        system_prompt=conversation.system_prompt,
        tool_specs=conversation.tool_specs,
        budget=budget,
        protected=protected_in(compression, history),
        ledger=ledger,
        request_tokens=request,
        references=lambda message: () if known is None else known.shown_in(message.blocks),
    )


def _measured(
    conversation: Conversation, compression: ContextCompression | None, dialect: Dialect | None
) -> tuple[History, Budget, int | None]:
    """Return the messages, what they may take, and what a request with them takes as far as a provider told."""
    if compression is not None:
        window = compression.window
        window.read(conversation)
        return window.history, window.budget_of_provider(conversation), window.meter.request(conversation)
    history = History(dialect)
    history.read(conversation.messages)
    fixed = history.estimator.system(conversation.system_prompt) + history.estimator.tools(conversation.tool_specs)
    return history, Budget(window=conversation.window or WINDOW, reserved=conversation.reserved, fixed=fixed), None
