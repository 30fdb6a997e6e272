"""How much of a model's window may be used, when to act, and how far down to go."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.defaults import LOW_WATER, MARKER_TOKENS, TRIGGER
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["Budget", "require_share"]

_NEARLY_ALL = 0.9
_SHARE_FOR_MARKER = 12


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The tokens of a model call, and what of them is for messages.

    *window* is what the model takes, *reserved* is kept free for its answer, and *fixed* goes to the system prompt and
    the tools. At *trigger*, a share of the window, history is reduced; then down to *low_water*, so that many turns
    only append. *marker_tokens* are for the extract of what was removed.
    """

    window: int
    reserved: int = 0
    fixed: int = 0
    trigger: float = TRIGGER
    low_water: float = LOW_WATER
    marker_tokens: int = MARKER_TOKENS

    def __post_init__(self) -> None:
        _require_tokens("window", self.window, at_least=1)
        _require_tokens("reserved", self.reserved)
        _require_tokens("fixed", self.fixed)
        _require_tokens("marker_tokens", self.marker_tokens)
        require_share("trigger", self.trigger)
        require_share("low_water", self.low_water)
        if self.reserved >= self.window:
            raise InvalidValueError(f"reserved must be below the window ({self.window:,}), got {self.reserved:,}")
        if self.low_water > self.trigger:
            raise InvalidValueError(f"low_water must be at most the trigger ({self.trigger:g}), got {self.low_water:g}")

    @property
    def limit(self) -> int:
        """What messages may take at most; never less than nothing."""
        return max(self.window - self.reserved - self.fixed, 0)

    @property
    def trigger_at(self) -> int:
        """From how many tokens of messages on history is reduced."""
        return self._messages_at(self.trigger)

    @property
    def target(self) -> int:
        """To how many tokens of messages history is reduced."""
        return min(self._messages_at(self.low_water), int(self.trigger_at * self.low_water / self.trigger))

    @property
    def marker(self) -> int:
        """What an extract of removed messages takes at most: never more than a twelfth of the window."""
        return min(self.marker_tokens, self.window // _SHARE_FOR_MARKER)

    def _messages_at(self, share: float) -> int:
        """Return that share of the window less what is fixed; where little is left, a share of what is."""
        of_window, of_rest = int(self.window * share) - self.fixed, int(self.limit * share / 2)
        return min(max(of_window, of_rest), int(self.limit * max(share, _NEARLY_ALL)))

    def below(self, tokens: int) -> Budget:
        """Return a budget that messages of so many tokens do not fit: a provider said that they did not."""
        window = min(self.window, self.fixed + self.reserved + max(tokens - 1, 1))
        return replace(self, window=max(window, self.reserved + 1))


def _require_tokens(name: str, value: object, at_least: int = 0) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a number of tokens, got {type(value).__name__}")
    if value < at_least:
        raise InvalidValueError(f"{name} must be at least {at_least}, got {value}")


def require_share(name: str, value: object) -> None:
    """Refuse anything but a number above 0 and up to 1."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a number above 0 and up to 1, got {type(value).__name__}")
    if not 0 < value <= 1:
        raise InvalidValueError(f"{name} must be above 0 and up to 1, got {value!r:.80}")
