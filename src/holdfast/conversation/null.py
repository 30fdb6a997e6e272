"""Nothing is managed."""

from __future__ import annotations

from typing import Any

from holdfast.conversation.base import ConversationManager

__all__ = ["NullConversationManager"]


class NullConversationManager(ConversationManager):
    """Leaves the history as it is. An overflow is raised as it came."""

    def apply_management(self, agent: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def reduce_context(self, agent: Any, e: Exception | None = None, **kwargs: Any) -> None:
        """Raise the overflow, if there was one."""
        if e is not None:
            raise e
