"""What providers charge for input, with a prompt cache and without. `AS_OF` says when these prices were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.replay.counts import Counts

__all__ = ["AS_OF", "DEFAULT", "PRICES", "Bill", "Prices", "prices_from"]

AS_OF = "2026-11-18"
DEFAULT = "claude-sonnet-5-5"
_PER = 1_000_000
_MOST = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Prices:
    """US dollars for a million tokens. *output* is for summaries only: the answers are the same under every policy."""

    name: str
    input: float
    cache_read: float
    cache_write: float
    output: float = 0.0
    as_of: str = AS_OF

    def __post_init__(self) -> None:
        for name in ("name", "as_of"):
            if not isinstance(text := getattr(self, name), str):
                raise InvalidTypeError(f"{name} of prices must be text, got {text!r:.80}")
        for name in ("input", "cache_read", "cache_write", "output"):
            price = getattr(self, name)
            if not isinstance(price, (int, float)) or isinstance(price, bool) or not (0 <= price <= _MOST):
                raise InvalidValueError(f"the price {name} must be dollars for a million tokens, got {price!r:.80}")


@dataclass(frozen=True)
class Bill:
    """What input costs: *cached* with a prompt cache, *uncached* without one.

    *lookups* and *summaries* come on top of either: what the look-ups for values that were not in the window would have
    sent, and what a model would have been sent and have written for summaries.
    """

    cached: float
    uncached: float
    lookups: float
    summaries: float

    @classmethod
    def of(cls, counts: Counts, prices: Prices) -> Bill:
        """Return the price of what was counted."""
        return cls(
            cached=(counts.cached * prices.cache_read + counts.fresh * prices.cache_write) / _PER,
            uncached=counts.tokens * prices.input / _PER,
            lookups=(counts.lookup_cached * prices.cache_read + counts.lookup_fresh * prices.cache_write) / _PER,
            summaries=(counts.summary_input * prices.input + counts.summary_output * prices.output) / _PER,
        )

    @property
    def total(self) -> float:
        """All that would have been paid with a prompt cache."""
        return self.cached + self.lookups + self.summaries


def _listed(name: str, input: float, cache_read: float, cache_write: float, output: float) -> Prices:
    return Prices(name=name, input=input, cache_read=cache_read, cache_write=cache_write, output=output)


PRICES: Mapping[str, Prices] = MappingProxyType(
    {
        prices.name: prices
        for prices in (
            # Anthropic, written to the cache for five minutes.
            _listed("claude-fable-5-1", 10.00, 0.25, 12.50, 50.00),
            _listed("claude-opus-5-5", 4.00, 0.20, 5.00, 20.00),
            _listed("claude-sonnet-5-5", 2.00, 0.10, 2.50, 10.00),
            _listed("claude-haiku-4-5", 1.00, 0.10, 1.25, 5.00),
            # OpenAI, requests of up to 272,000 tokens.
            _listed("gpt-6.1-sol", 2.00, 0.10, 2.50, 10.00),
            _listed("gpt-6-luna", 0.10, 0.01, 0.125, 0.50),
            # Google, at the rate that holds to the end of 2026; writing to the implicit cache costs nothing more.
            _listed("gemini-3.8-flash", 0.75, 0.075, 0.75, 3.75),
            # DeepSeek, at peak hours.
            _listed("deepseek-v4-pro", 1.32, 0.044, 1.32, 3.96),
        )
    }
)


def prices_from(given: str | Mapping[str, Any] | Prices) -> Prices:
    """Return prices by the name of a model, or from a mapping of your own."""
    if isinstance(given, Prices):
        return given
    if isinstance(given, Mapping):
        return _own(given)
    if not isinstance(given, str):
        raise InvalidTypeError(f"prices must be the name of a model or a mapping, got {type(given).__name__}")
    if given not in PRICES:
        raise InvalidValueError(
            f"no prices are known for {given!r:.80}; known are {', '.join(PRICES)}; or give your own"
        )
    return PRICES[given]


def _own(given: Mapping[str, Any]) -> Prices:
    allowed = ("name", "input", "cache_read", "cache_write", "output", "as_of")
    if unknown := next((name for name in given if name not in allowed), None):
        raise InvalidValueError(f"unknown price {unknown!r:.80}: allowed are {', '.join(allowed)}")
    if missing := next((name for name in ("input", "cache_read") if name not in given), None):
        raise InvalidValueError(f"the price {missing} is missing; a price is dollars for a million tokens")
    usual = {"name": "your own prices", "cache_write": given["input"], "as_of": ""}
    return Prices(**{**usual, **given})
