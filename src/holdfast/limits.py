"""How many tokens a model takes, and how many of them are kept free for its answer."""

from __future__ import annotations

from holdfast.defaults import ANSWER_TOKENS
from holdfast.hooks import Conversation
from holdfast.model_windows import limits_of

__all__ = ["Limits"]

# Of the window, an answer may take so much unless somebody asked for more.
_SHARE_FOR_ANSWER, _LARGEST_SHARE_FOR_ANSWER = 8, 2


class Limits:
    """What a user said of the *window* and of what is *reserved* in it for the answer; None for nothing."""

    def __init__(self, window: int | None, reserved: int | None) -> None:
        _check(window, reserved)
        self.window = window
        self.reserved = reserved

    def of(self, model: str, *, window: int | None = None, answer: int | None = None) -> tuple[int | None, int]:
        """Return the window and what is reserved in it for a *model* that says *window* and *answer* of itself."""
        _check(window, None)
        _check(None, answer)
        listed = limits_of(model)
        found = self.window or window or (listed.window if listed else None)
        if self.reserved is not None or found is None:
            reserved = ANSWER_TOKENS if self.reserved is None else self.reserved
            _check(found, reserved)
            return found, reserved
        if answer is not None:
            return found, min(answer, found // _LARGEST_SHARE_FOR_ANSWER)
        longest = listed.answer if listed and listed.answer else ANSWER_TOKENS
        return found, min(longest, found // _SHARE_FOR_ANSWER)


def _check(window: int | None, reserved: int | None) -> None:
    """Refuse what a conversation would refuse."""
    Conversation([], window=window, reserved=0 if reserved is None else reserved)
