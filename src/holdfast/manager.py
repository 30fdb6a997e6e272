"""One object that keeps a conversation inside its window: configuration in, composed plugins out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from holdfast.agent_tools import AgentTool
from holdfast.checks import check_flag
from holdfast.compression import ContextCompression, pin_message
from holdfast.configuration import (
    CompressionChoice,
    OffloaderChoice,
    StorageChoice,
    compression_from,
    known,
    offloader_from,
)
from holdfast.defaults import ANSWER_TOKENS
from holdfast.dialects import dialect_named
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.hooks import Conversation, HookRegistry, Plugin
from holdfast.loops import ManagedConversation
from holdfast.model_windows import limits_of
from holdfast.offload import ContextOffloader

__all__ = ["ContextManager"]

_Managed = TypeVar("_Managed", bound="ContextManager")
_Part = TypeVar("_Part", ContextCompression, ContextOffloader)

# Of the window, an answer may take so much unless somebody asked for more.
_SHARE_FOR_ANSWER, _LARGEST_SHARE_FOR_ANSWER = 8, 2


class ContextManager:
    """Keeps one conversation inside its model's window.

    With ``"auto"`` as *strategy* everything is on, and options override it. Without, nothing is on but what is asked
    for: *compression* is True, ``"truncate"``, ``"summarize"``, a mapping of options, a `Truncate` or `Summarize`;
    *offloader* is True, a mapping of options or `OffloadRules`. *offload_storage* holds what left the window: a
    storage, ``"memory"``, a directory, ``"s3://bucket/prefix"`` or a mapping.

    The user's first message and the one being worked on stay in any case, unless *protect_task* is False or a
    `Protection` says otherwise. *protect_first* and *protect_last* keep so many messages more. *window* is how many
    tokens the model takes, *reserved* how many of them are kept free for its answer; both are known of many models.

    An own `ContextOffloader` or `ContextCompression`, given as the option or among *plugins*, takes the place of the
    managed one. What is wrong or has no effect is an error here, not later.
    """

    speaks: ClassVar[str | None] = None
    """The dialect, unless *dialect* is given."""

    def __init__(
        self,
        strategy: str | None = None,
        *,
        compression: CompressionChoice = None,
        offloader: OffloaderChoice = None,
        offload_storage: StorageChoice = None,
        protect_first: int | None = None,
        protect_last: int | None = None,
        protect_task: bool | None = None,
        window: int | None = None,
        reserved: int | None = None,
        include_pin_tool: bool = True,
        dialect: str | None = None,
        count_text: Callable[[str], int] | None = None,
        plugins: Iterable[Plugin] | None = (),
    ) -> None:
        is_auto = _is_auto(strategy)
        dialect = self.speaks if dialect is None else dialect
        self.strategy = strategy
        self.dialect = None if dialect is None else dialect_named(dialect)
        given = _checked_plugins(plugins)
        shared: dict[str, Any] = {"dialect": dialect, "count_text": count_text}
        protect = {"protect_first": protect_first, "protect_last": protect_last, "protect_task": protect_task}
        asked = {**protect, "window": window, "reserved": reserved}
        compression = _chosen("compression", compression, is_auto, _brought(ContextCompression, given))
        offloader = _chosen("offloader", offloader, is_auto, _brought(ContextOffloader, given))
        _refuse_without("compression", compression, asked)
        _refuse_without("offloader", offloader, {"offload_storage": offload_storage})
        self.compression = compression_from(compression, protect, window=window, **shared)
        self.offloader = offloader_from(offloader, offload_storage, **shared)
        self.plugins = tuple(part for part in given if not isinstance(part, (ContextCompression, ContextOffloader)))
        self._window, self._reserved = _checked_limits(window, reserved)
        check_flag("include_pin_tool", include_pin_tool)
        self._pins = include_pin_tool and self.compression is not None
        self._conversation: Conversation | None = None

    @classmethod
    def from_config(cls: type[_Managed], config: Mapping[str, Any]) -> _Managed:
        """Make one from plain data, as YAML or JSON hold it: a mapping of the options."""
        if not isinstance(config, Mapping):
            raise InvalidTypeError(f"config must be a mapping of options, got {type(config).__name__}")
        inherited, own = inspect.signature(ContextManager).parameters, inspect.signature(cls).parameters
        return cls(**known("the context manager", config, inherited | own))

    @property
    def agent_tools(self) -> tuple[AgentTool, ...]:
        """What the agent is given: to look at what left, and to keep messages in view."""
        return (*(self.offloader.tools if self.offloader else ()), *((pin_message,) if self._pins else ()))

    def register_hooks(self, registry: HookRegistry) -> None:
        """Act on the events of one conversation: large results leave first, then old messages."""
        for plugin in (self.offloader, self.compression, *self.plugins):
            if plugin is not None:
                plugin.register_hooks(registry)

    def converse(
        self,
        messages: list[Any],
        *,
        system_prompt: Any = None,
        tool_specs: Sequence[Any] | None = None,
        model: str = "",
        window: int | None = None,
    ) -> ManagedConversation:
        """Return *messages*, a list that a loop of your own appends to, as a conversation to go on with.

        The manager belongs to it from now on, and must know the *dialect*. Other options are what the provider is sent.
        """
        if self.dialect is None:
            raise InvalidValueError(
                "say which messages the loop speaks: ContextManager(…, dialect='openai'), 'anthropic' or 'converse'"
            )
        if None not in (window, self._window):
            raise InvalidValueError(f"window is given twice: {window}, and {self._window} to the manager")
        specs = [
            *_checked_specs(tool_specs, self.agent_tools),
            *(tool.spec(self.dialect.name) for tool in self.agent_tools),
        ]
        found, reserved = self.limits_for(model, window=window)
        conversation = Conversation(messages, system_prompt, specs, model, found, reserved)
        self.own(conversation)
        return ManagedConversation(conversation, self, self.dialect, self.agent_tools)

    def own(self, conversation: Conversation) -> None:
        """Belong to *conversation*, and to no other."""
        if self._conversation is not None and self._conversation is not conversation:
            raise InvalidValueError(
                "this ContextManager belongs to another conversation already; "
                "make one for each, with one storage if you like"
            )
        for part in (self.offloader, self.compression):
            if part is not None:
                part.own(conversation)
        self._conversation = conversation

    def limits_for(self, model: str, *, window: int | None = None, answer: int | None = None) -> tuple[int | None, int]:
        """Return how many tokens a model takes, None if nobody knows, and how many of them are for its answer.

        What this manager was told comes first, then *window* and *answer*, which the model says of itself, then what is
        known of well-known models.
        """
        _checked_limits(window, None)
        _checked_limits(None, answer)
        listed = limits_of(model)
        found = self._window or window or (listed.window if listed else None)
        if self._reserved is not None or found is None:
            return _checked_limits(found, ANSWER_TOKENS if self._reserved is None else self._reserved)
        if answer is not None:
            return found, min(answer, found // _LARGEST_SHARE_FOR_ANSWER)
        longest = listed.answer if listed and listed.answer else ANSWER_TOKENS
        return found, min(longest, found // _SHARE_FOR_ANSWER)

    def get_state(self) -> dict[str, Any]:
        """Return what to save with a session, as JSON."""
        parts = {"compression": self.compression, "offloader": self.offloader}
        return {name: part.get_state() for name, part in parts.items() if part is not None}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        for name, part in (("compression", self.compression), ("offloader", self.offloader)):
            if part is not None and name in state:
                part.restore(state[name])

    async def aclose(self) -> None:
        """Wait for what is still under way. The storage is its owner's to close."""
        if self.offloader is not None:
            await self.offloader.aclose()


def _is_auto(strategy: object) -> bool:
    if strategy is None or strategy == "auto":
        return strategy is not None
    raise InvalidValueError(f"strategy must be 'auto', or left out to add parts one by one, got {strategy!r:.80}")


def _brought(kind: type[_Part], plugins: Sequence[Any]) -> _Part | None:
    """Return the part of that kind that a user brought along, by type."""
    found = [plugin for plugin in plugins if isinstance(plugin, kind)]
    if len(found) > 1:
        raise InvalidValueError(f"plugins holds {len(found)} of {kind.__name__}; one conversation needs one")
    return found[0] if found else None


def _chosen(name: str, given: Any, is_auto: bool, brought: Any) -> Any:
    if brought is None:
        return is_auto if given is None else given
    if given is None or given is True:
        return brought
    raise InvalidValueError(f"{name} is given twice: as an option, and among the plugins; leave one of them out")


def _refuse_without(part: str, choice: Any, options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if value is not None and (choice is None or choice is False):
            raise InvalidValueError(f"{name} has no effect without {part}; add {part}=True, or leave it out")


def _checked_plugins(plugins: Iterable[Plugin] | None) -> tuple[Plugin, ...]:
    if plugins is not None and (isinstance(plugins, (str, Mapping)) or not isinstance(plugins, Iterable)):
        raise InvalidTypeError(f"plugins must be a list of plugins, got {plugins!r:.80}")
    given = tuple(plugins or ())
    for plugin in given:
        if isinstance(plugin, type) or not callable(getattr(plugin, "register_hooks", None)):
            raise InvalidTypeError(f"plugins must have register_hooks(registry), got {plugin!r:.80}")
        if isinstance(plugin, ContextManager):
            raise InvalidTypeError("plugins holds a ContextManager; one conversation needs one")
    return given


_Tokens = TypeVar("_Tokens", int, "int | None")


def _checked_limits(window: int | None, reserved: _Tokens) -> tuple[int | None, _Tokens]:
    """Return what was given, refused as a conversation would refuse it."""
    Conversation([], window=window, reserved=0 if reserved is None else reserved)
    return window, reserved


def _checked_specs(tool_specs: Sequence[Any] | None, own: Sequence[AgentTool]) -> Sequence[Any]:
    if tool_specs is not None and not isinstance(tool_specs, (list, tuple)):
        raise InvalidTypeError(f"tool_specs must be a list of tools, got {tool_specs!r:.80}")
    names = {tool.name for tool in own}
    for spec in tool_specs or ():
        parts = (spec, *(spec.get(key) for key in ("function", "toolSpec"))) if isinstance(spec, Mapping) else ()
        taken = names & {part.get("name") for part in parts if isinstance(part, Mapping)}
        if taken:
            raise InvalidValueError(
                f"there are two tools called {taken.pop()}: the loop's and the manager's; rename the loop's, or use "
                "include_pin_tool=False or offloader={'include_retrieval_tool': False}"
            )
    return tool_specs or ()
