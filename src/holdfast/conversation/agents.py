"""Agents of any framework, seen as conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import InvalidTypeError
from holdfast.hooks import Conversation

__all__ = ["conversation_of"]


def conversation_of(agent: Any) -> Conversation:
    """Return what *agent*, anything with a list of ``messages``, says of its conversation."""
    if isinstance(agent, Conversation):
        return agent
    messages = getattr(agent, "messages", None)
    if not isinstance(messages, list):
        raise InvalidTypeError(f"an agent must have a list of messages, which {type(agent).__name__} has not")
    model = getattr(agent, "model", None)
    return Conversation(
        messages,
        system_prompt=getattr(agent, "system_prompt", None),
        tool_specs=_tool_specs(agent),
        model=model if isinstance(model, str) else _model_id(model),
        window=_window(agent, model),
    )


def _tool_specs(agent: Any) -> Sequence[Any]:
    given = getattr(agent, "tool_specs", None)
    if given is None:
        listed = getattr(getattr(agent, "tool_registry", None), "get_all_tool_specs", None)
        given = listed() if callable(listed) else None
    return list(given) if isinstance(given, (list, tuple)) else []


def _model_id(model: Any) -> str:
    config = getattr(model, "config", None)
    found = config.get("model_id") if isinstance(config, Mapping) else None
    return found if isinstance(found, str) else ""


def _window(agent: Any, model: Any) -> int | None:
    for owner, name in ((agent, "window"), (model, "context_window_limit")):
        value = getattr(owner, name, None)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None
