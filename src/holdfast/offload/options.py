"""When a result leaves the window."""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from holdfast.defaults import PREVIEW_TOKENS, THRESHOLD
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["OffloadRules", "ShouldOffload"]

logger = logging.getLogger(__name__)

_TIMES_FOR_ERRORS = 4
_TIMES_FOR_TURNS = 4
_FEWEST_IN_ANSWER = 300

ShouldOffload: TypeAlias = Callable[..., "bool | Awaitable[bool]"]


@dataclass(frozen=True, kw_only=True)
class OffloadRules:
    """A result of more than *threshold* tokens leaves, a failed call's only if it is huge.

    *thresholds* holds other ones by tool; None there, and a name in *exclude*, mean never. *should_offload* has the
    last word on a result over its threshold. *turn_budget* is for all results of one turn together, *answer_tokens* for
    one answer of the tools. The storage has *store_timeout* seconds for each of its own.
    """

    threshold: int = THRESHOLD
    preview_tokens: int = PREVIEW_TOKENS
    thresholds: Mapping[str, int | None] | None = None
    exclude: Collection[str] = ()
    error_threshold: int | None = None
    turn_budget: int | None = None
    answer_tokens: int | None = None
    store_timeout: float = 30.0
    should_offload: ShouldOffload | None = None

    def __post_init__(self) -> None:
        _require_tokens("threshold", self.threshold)
        _require_tokens("preview_tokens", self.preview_tokens, least=0)
        if self.preview_tokens >= self.threshold:
            raise InvalidValueError(
                f"preview_tokens must be below threshold ({self.threshold:,}), got {self.preview_tokens:,}"
            )
        self._check_tools()
        for name, value, least in (
            ("error_threshold", self.error_threshold, self.threshold),
            ("turn_budget", self.turn_budget, self.threshold),
            ("answer_tokens", self.answer_tokens, _FEWEST_IN_ANSWER),
        ):
            if value is not None:
                _require_tokens(name, value, least)
        _require_seconds("store_timeout", self.store_timeout)
        if self.should_offload is not None and not callable(self.should_offload):
            raise InvalidTypeError(f"should_offload must be callable, got {type(self.should_offload).__name__}")

    def _check_tools(self) -> None:
        if self.thresholds is not None and not isinstance(self.thresholds, Mapping):
            raise InvalidTypeError(f"thresholds must map tools to tokens, got {type(self.thresholds).__name__}")
        for tool, tokens in (self.thresholds or {}).items():
            if not isinstance(tool, str):
                raise InvalidTypeError(f"thresholds must map tools' names to tokens, got the name {tool!r:.80}")
            if tokens is not None:
                _require_tokens(f"thresholds[{tool!r}]", tokens)
        is_list = isinstance(self.exclude, Collection) and not isinstance(self.exclude, (str, bytes, Mapping))
        if not is_list or not all(isinstance(name, str) for name in self.exclude):
            raise InvalidTypeError(f"exclude must be a list of tools' names, got {self.exclude!r:.80}")
        for tool in self.exclude:
            if tool in (self.thresholds or {}):
                raise InvalidValueError(f"{tool!r} has a threshold and is excluded; leave one of them out")

    def limit_for(self, tool_name: str, *, is_error: bool) -> int | None:
        """Return how many tokens a tool's result may have in the window; None if any number."""
        if tool_name in self.exclude:
            return None
        limit = (self.thresholds or {}).get(tool_name, self.threshold)
        if limit is None or not is_error:
            return limit
        return self.error_threshold if self.error_threshold is not None else limit * _TIMES_FOR_ERRORS

    def preview_for(self, limit: int) -> int:
        """Return how long the previews of a result may be whose threshold is *limit*."""
        return min(self.preview_tokens, limit * self.preview_tokens // self.threshold)

    @property
    def limit_of_answer(self) -> int:
        """How many tokens an answer of the tools may have."""
        return max(self.threshold, _FEWEST_IN_ANSWER) if self.answer_tokens is None else self.answer_tokens

    @property
    def limit_of_turn(self) -> int:
        """How many tokens all results of one turn may have together: there is room for some large ones."""
        if self.turn_budget is not None:
            return self.turn_budget
        return max(self.threshold, self.limit_of_answer) * _TIMES_FOR_TURNS

    async def agreed(self, tool_name: str, tokens: int, **facts: Any) -> bool:
        """Ask `should_offload`. If that fails, the result leaves as if nobody had been asked."""
        if self.should_offload is None:
            return True
        try:
            verdict = self.should_offload(tool_name, tokens, **(facts if _takes_more(self.should_offload) else {}))
            return bool(await verdict if inspect.isawaitable(verdict) else verdict)
        except Exception:
            # It is the user's code; whatever is wrong with it, the window must not overflow for it.
            logger.exception("should_offload failed for %s, so its result is offloaded", tool_name)
            return True


def _require_tokens(name: str, value: object, least: int = 1) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidValueError(f"{name} must be a number of tokens, {least:,} or more, got {value!r:.80}")


def _require_seconds(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value < math.inf:
        raise InvalidValueError(f"{name} must be a number of seconds above 0, got {value!r:.80}")


def _takes_more(callback: ShouldOffload) -> bool:
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
