"""What the next model call takes: known for what was sent before, estimated for what is new."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from holdfast.budget import Budget
from holdfast.history import History
from holdfast.hooks import Conversation
from holdfast.tokens import Calibration, reported_input_tokens

__all__ = ["Meter"]

# Tokenizers differ by less than this; a larger difference is a system prompt or tools that nobody told of.
_AS_MUCH = 2


@dataclass(frozen=True)
class _Anchor:
    """A request whose tokens the provider reported."""

    model: str
    messages: int
    revision: int
    estimated: int
    reported: int


class Meter:
    """Estimates requests, and learns from reports how the model at hand counts."""

    def __init__(self, history: History, calibration: Calibration) -> None:
        self._history = history
        self.calibration = calibration
        self._anchor: _Anchor | None = None
        self._fixed_for: tuple[Any, tuple[Any, ...]] | None = None
        self._fixed = 0

    def fixed(self, conversation: Conversation) -> int:
        """Return the estimated tokens of system prompt and tools; counted again only when they change."""
        given = (conversation.system_prompt, tuple(conversation.tool_specs or ()))
        if self._fixed_for is None or not _same(self._fixed_for, given):
            estimator = self._history.estimator
            self._fixed = estimator.system(given[0]) + estimator.tools(given[1])
            self._fixed_for = given
        return self._fixed

    def request(self, conversation: Conversation) -> int:
        """Return the tokens of the next request: what was reported for its beginning, and an estimate of the rest."""
        ratio = self.calibration.ratio(conversation.model)
        estimated = self._history.total + self.fixed(conversation)
        if (anchor := self._anchor) is None or not self._goes_on_from(anchor, conversation):
            return math.ceil(estimated * ratio)
        return anchor.reported + math.ceil((estimated - anchor.estimated) * ratio)

    def scaled(self, budget: Budget, conversation: Conversation) -> Budget:
        """Return *budget*, which is in the provider's tokens, in estimated ones."""
        estimated = self._history.total + budget.fixed
        ratio = self.request(conversation) / estimated if estimated else 1.0
        window = max(int(budget.window / ratio), 1)
        return replace(budget, window=window, reserved=min(int(budget.reserved / ratio), window - 1))

    def learn(self, conversation: Conversation, usage: Any) -> None:
        """Take in the usage that was reported for the request just made; nothing, if none was."""
        if (reported := reported_input_tokens(usage)) is not None:
            self.learn_total(conversation, reported)

    def learn_total(self, conversation: Conversation, reported: int) -> None:
        """Take in that the request just made had so many tokens, if that can be."""
        estimated = self._history.total + self.fixed(conversation)
        if not self.calibration.is_plausible(estimated, reported):
            return
        self._calibrate(conversation, estimated, reported)
        self._anchor = _Anchor(conversation.model, len(self._history), self._history.revision, estimated, reported)

    def _calibrate(self, conversation: Conversation, estimated: int, reported: int) -> None:
        """Learn from the whole request, or where it seems that a part is not seen here, from what it grew by."""
        if self._fixed or estimated / _AS_MUCH <= reported <= estimated * _AS_MUCH:
            self.calibration.learn(conversation.model, estimated, reported)
        elif (anchor := self._anchor) is not None and self._goes_on_from(anchor, conversation):
            self.calibration.learn(conversation.model, estimated - anchor.estimated, reported - anchor.reported)

    def _goes_on_from(self, anchor: _Anchor, conversation: Conversation) -> bool:
        same = (anchor.model, anchor.revision) == (conversation.model, self._history.revision)
        return same and anchor.messages <= len(self._history)


def _same(known: tuple[Any, tuple[Any, ...]], given: tuple[Any, tuple[Any, ...]]) -> bool:
    (prompt, tools), (new_prompt, new_tools) = known, given
    same_prompt = prompt is new_prompt or prompt == new_prompt
    return same_prompt and (tools == new_tools)
