"""What providers report of the tokens they counted, and what is learnt from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import InvalidTypeError

__all__ = ["Calibration", "reported_input_tokens"]

# Beyond these, the report is of something else than the request that was estimated.
_SMALLEST_RATIO, _LARGEST_RATIO = 0.25, 4.0
_MOST_UNSEEN = 50_000
_WEIGHT_OF_NEW = 0.5
_MOST_MODELS = 100


def reported_input_tokens(usage: Any) -> int | None:
    """Return how many tokens the provider was sent, cached or not; None if it does not say.

    Reads the usage of Converse, Anthropic and OpenAI, as a mapping or an object.
    """
    if (prompt := _number(usage, "prompt_tokens")) is not None:
        return prompt or None
    for fresh, *cached in _NAMES:
        if (tokens := _number(usage, fresh)) is not None:
            beside = sum(_number(usage, name) or 0 for name in cached)
            return (tokens if _includes_cached(usage, tokens, beside) else tokens + beside) or None
    return None


def _includes_cached(usage: Any, tokens: int, cached: int) -> bool:
    """Say whether the cached tokens are among the others: so Strands reports OpenAI and Gemini in Converse's names."""
    total, answer = _number(usage, "totalTokens"), _number(usage, "outputTokens")
    return total is not None and answer is not None and cached <= tokens == total - answer


_NAMES = (
    ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
    ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
)


def _number(usage: Any, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, Mapping) else getattr(usage, name, None)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


class Calibration:
    """How much more or less each model counts than the estimate, learnt from what was reported."""

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def ratio(self, model: str) -> float:
        """Return by what to multiply an estimate for *model*: 1 until something was reported."""
        return self._ratios.get(model, 1.0)

    @staticmethod
    def is_plausible(estimated: int, reported: int) -> bool:
        """Say whether a report can be of the request that was estimated, and of a prompt and tools not seen here."""
        return estimated * _SMALLEST_RATIO <= reported <= estimated * _LARGEST_RATIO + _MOST_UNSEEN

    def learn(self, model: str, estimated: int, reported: int) -> None:
        """Take in that *reported* tokens were counted where *estimated* had been expected, if that can be."""
        if estimated <= 0 or not _SMALLEST_RATIO <= (ratio := reported / estimated) <= _LARGEST_RATIO:
            return
        known = self._ratios.pop(model, ratio)
        self._ratios[model] = known + _WEIGHT_OF_NEW * (ratio - known)
        while len(self._ratios) > _MOST_MODELS:
            del self._ratios[next(iter(self._ratios))]

    def get_state(self) -> dict[str, float]:
        """Return all of it as JSON."""
        return dict(self._ratios)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `get_state` returned."""
        if not isinstance(state, Mapping):
            raise InvalidTypeError(f"state must be what get_state() returned, got {type(state).__name__}")
        for model, ratio in state.items():
            if isinstance(ratio, (int, float)) and _SMALLEST_RATIO <= ratio <= _LARGEST_RATIO:
                self._ratios[str(model)] = float(ratio)
