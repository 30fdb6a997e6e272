"""Others that would manage the same agent's history."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from strands import Agent
from strands.agent.conversation_manager import (
    ConversationManager,
    NullConversationManager,
    SlidingWindowConversationManager,
)
from strands.vended_plugins.context_offloader import ContextOffloader

from holdfast.agent_tools import AgentTool
from holdfast.errors import InvalidValueError

__all__ = [
    "has_offloader",
    "refuse_rivals",
    "refuse_second_offloader",
    "refuse_taken_names",
    "set_aside",
    "steps_aside",
]

# From here through the plugin and Strands' registry to where the user made the agent.
_USERS_LINE = 8


def refuse_rivals(agent: Agent, *, compresses: bool) -> None:
    """Refuse an agent that another manager works on in a way that cannot be ended."""
    if agent.context_manager is not None:
        raise InvalidValueError(
            "Agent(context_manager=…) is Strands' own, and would work against this one; leave one of them out"
        )
    if compresses and agent.model.stateful:
        raise InvalidValueError(
            "this model keeps the conversation on its server, so there is nothing to compress; "
            "use ContextManager(offloader=True)"
        )


def steps_aside(agent: Agent) -> bool:
    """Say whether the agent brings an offloader of Strands, beside which a second one would only be in the way."""
    if not has_offloader(agent):
        return False
    warnings.warn("the agent brings an offloader of its own, so this manager offloads nothing", stacklevel=_USERS_LINE)
    return True


def refuse_second_offloader(agent: Agent) -> None:
    """Refuse an offloader of Strands that came after this manager, which offloads by now."""
    if has_offloader(agent):
        raise InvalidValueError(
            "the agent has two offloaders; put Strands' ContextOffloader before the ContextManager, or use "
            "ContextManager(compression=True) beside it"
        )


def refuse_taken_names(agent: Agent, tools: Iterable[AgentTool]) -> None:
    """Refuse an agent with a tool that is called like one of *tools*."""
    for tool in tools:
        if tool.name in agent.tool_registry.registry:
            raise InvalidValueError(
                f"the agent has a tool called {tool.name} already; rename it, or use include_pin_tool=False or "
                "offloader={'include_retrieval_tool': False}"
            )


def set_aside(agent: Agent) -> None:
    """End the work of the agent's conversation manager, and say so if somebody chose it."""
    manager = agent.conversation_manager
    if not _is_default(manager) and not isinstance(manager, NullConversationManager):
        warnings.warn(
            f"the ContextManager keeps this agent's history, so its {type(manager).__name__} does nothing any more; "
            "leave conversation_manager out, or use ContextManager(offloader=True) beside it",
            stacklevel=_USERS_LINE,
        )
    for entries in getattr(agent.hooks, "_registered_callbacks", {}).values():
        entries[:] = [entry for entry in entries if getattr(entry.callback, "__self__", None) is not manager]


def has_offloader(agent: Agent) -> bool:
    """Say whether Strands' own offloader is among the plugins of the agent."""
    plugins = getattr(getattr(agent, "_plugin_registry", None), "_plugins", {})
    return any(isinstance(plugin, ContextOffloader) for plugin in plugins.values())


def _is_default(manager: ConversationManager) -> bool:
    usual = SlidingWindowConversationManager()
    return type(manager) is type(usual) and vars(manager) == vars(usual)
