"""What a Strands agent says of itself."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from strands import Agent
from strands.middleware import InvokeModelContext

from holdfast.errors import InvalidValueError
from holdfast.hooks import Conversation

__all__ = ["AgentReader", "AuxiliaryModel", "reported_usage"]

logger = logging.getLogger(__name__)

# Whoever serves these decides how much they take, whatever they are called.
_LOCAL = frozenset({"strands.models.ollama", "strands.models.llamacpp", "strands.models.sagemaker"})


class AgentReader:
    """Keeps one conversation up to what its agent has become: its list of messages, its model and its tools."""

    def __init__(self, agent: Agent, limits_for: Callable[..., tuple[int | None, int]]) -> None:
        self.conversation = Conversation([])
        self._agent = weakref.ref(agent)
        self._serving: Any = None
        self._limits_for = limits_for
        self._tools: list[Any] = []
        self._about: Any = None
        self._is_running = False

    def latest(self) -> Conversation:
        """Return the conversation as it is now."""
        agent = self._agent()
        return self.conversation if agent is None else self.read(agent)

    def note_serving_model(self, context: InvokeModelContext) -> InvokeModelContext:
        """Remember which model is called: a router may have chosen another than the agent's own."""
        self._serving = context.model
        return context

    def read(self, agent: Agent, *, served: bool = False) -> Conversation:
        """Return the conversation, as of the agent's model, or of the one that just *served*.

        Tools and limits are read again only if they changed.
        """
        conversation = self.conversation
        conversation.messages = agent.messages
        conversation.system_prompt = agent.system_prompt_content or agent.system_prompt
        self._read_tools(agent)
        self._read_model(self._serving if served and self._serving is not None else agent.model)
        return conversation

    def _read_tools(self, agent: Agent) -> None:
        registry = agent.tool_registry
        tools = [*registry.registry.values(), *registry.dynamic_tools.values()]
        if tools != self._tools:
            self._tools = tools
            self.conversation.tool_specs = registry.get_all_tool_specs()

    def _read_model(self, model: Any) -> None:
        config = _config(model)
        about = (_model_id(config), _window_of(model), _most_tokens_of_answer(config))
        if about != self._about:
            self._is_running, self._about = self._about is not None, about
            self.conversation.model = about[0]
            self.conversation.window, self.conversation.reserved = self._limits(model, *about)

    def _limits(self, model: Any, name: str, window: int | None, answer: int | None) -> tuple[int | None, int]:
        try:
            return self._limits_for("" if type(model).__module__ in _LOCAL else name, window=window, answer=answer)
        except InvalidValueError as error:
            if not self._is_running:
                raise
            # The agent works already, and now another model serves that is smaller than was thought of.
            logger.warning("%s has less room for its answer than was asked for: %s", name or "the model", error)
            return window, (window or 0) // 2


class AuxiliaryModel:
    """Whatever model an agent has for work beside its own, at the time it is asked."""

    def __init__(self, agent: Agent) -> None:
        self._agent = weakref.ref(agent)

    def stream(self, *request: Any) -> Any:
        """Stream what the model answers."""
        if (agent := self._agent()) is None:
            raise ReferenceError("the agent whose model was to be asked is gone")
        return agent.aux_model.stream(*request)


def _model_id(config: Mapping[str, Any]) -> str:
    """Return a model's name; empty if it has none."""
    found = config.get("model_id")
    return found if isinstance(found, str) else ""


def _window_of(model: Any) -> int | None:
    """Return how many tokens a model says that it takes."""
    return _tokens(getattr(model, "context_window_limit", None))


def _most_tokens_of_answer(config: Mapping[str, Any]) -> int | None:
    """Return how long an answer a model was told to give at most."""
    params = config.get("params")
    places = (config, params if isinstance(params, Mapping) else {})
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    return next((tokens for place in places for name in names if (tokens := _tokens(place.get(name)))), None)


def reported_usage(message: Any) -> Any:
    """Return the usage that Strands noted on a model's message."""
    metadata = message.get("metadata") if isinstance(message, Mapping) else None
    return metadata.get("usage") if isinstance(metadata, Mapping) else None


def _config(model: Any) -> Mapping[str, Any]:
    try:
        config = model.get_config()
    except Exception:
        # A model is anybody's code; what it does not say is looked up or assumed.
        return {}
    return config if isinstance(config, Mapping) else getattr(config, "__dict__", {})


def _tokens(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
