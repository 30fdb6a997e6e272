"""Conversation managers for anything that has a list of messages."""

from __future__ import annotations

from holdfast.conversation.base import ConversationManager, ProactiveCompressionConfig
from holdfast.conversation.null import NullConversationManager
from holdfast.conversation.sliding_window import SlidingWindowConversationManager
from holdfast.conversation.summarizing import SummarizingConversationManager

__all__ = [
    "ConversationManager",
    "NullConversationManager",
    "ProactiveCompressionConfig",
    "SlidingWindowConversationManager",
    "SummarizingConversationManager",
]
