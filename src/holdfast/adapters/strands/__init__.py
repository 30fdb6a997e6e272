"""Strands agents: ``Agent(plugins=[ContextManager("auto")])``, and conversation managers for those who prefer one.

Needs ``pip install 'holdfast[strands]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.extras import lazily

if TYPE_CHECKING:
    from holdfast.adapters.strands.conversation_managers import (
        ConversationManager,
        NullConversationManager,
        SlidingWindowConversationManager,
        SummarizingConversationManager,
    )
    from holdfast.adapters.strands.plugin import ContextManager
    from holdfast.conversation import ProactiveCompressionConfig

__all__ = [
    "ContextManager",
    "ConversationManager",
    "NullConversationManager",
    "ProactiveCompressionConfig",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
]

_MANAGERS = "holdfast.adapters.strands.conversation_managers"

lazily(
    globals(),
    dict.fromkeys(__all__, _MANAGERS)
    | {
        "ContextManager": "holdfast.adapters.strands.plugin",
        "ProactiveCompressionConfig": "holdfast.conversation",
    },
    extra="strands",
)
