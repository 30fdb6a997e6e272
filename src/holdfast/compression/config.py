"""The forms in which compression is configured."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import fields
from typing import Any, Protocol, TypeAlias, cast

from holdfast.budget import Budget
from holdfast.compression.plans import Plan
from holdfast.compression.summarize import Summarize
from holdfast.compression.truncate import Truncate
from holdfast.defaults import METHOD
from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.history import History

__all__ = ["METHODS", "CompressionConfig", "Compressor", "compressor_from"]

METHODS: dict[str, type[Truncate] | type[Summarize]] = {"truncate": Truncate, "summarize": Summarize}


class Compressor(Protocol):
    """Decides how a history becomes smaller. It plans only; whoever asked applies the plan."""

    @property
    def window_size(self) -> int | None:
        """How many messages stay at most after an invocation; None for any number."""
        ...

    def plan(self, history: History, budget: Budget) -> Plan | Awaitable[Plan | None] | None:
        """Return what brings *history* down to the budget's target, or at least within its limit."""
        ...

    def plan_window(self, history: History, *, down_to: int | None = None) -> Plan | None:
        """Return what leaves so that at most `window_size` messages stay."""
        ...


CompressionConfig: TypeAlias = bool | str | Mapping[str, Any] | Truncate | Summarize | Compressor


def compressor_from(config: CompressionConfig) -> Compressor:
    """Return the compressor for True, a method's name, a mapping of options with ``method``, or one made already."""
    if config is True:
        config = METHOD
    if isinstance(config, str):
        return _method(config)()
    if isinstance(config, Mapping):
        options = dict(config)
        method = _method(options.pop("method", METHOD))
        return method(**_known(method, options))
    if _is_compressor(config):
        return cast(Compressor, config)
    raise InvalidTypeError(
        "compression must be True, 'truncate', 'summarize', a mapping of options, Truncate(…) or Summarize(…), "
        f"got {config!r:.80}"
    )


def _is_compressor(config: Any) -> bool:
    verbs = all(callable(getattr(config, verb, None)) for verb in ("plan", "plan_window"))
    return verbs and not isinstance(config, type) and hasattr(config, "window_size")


def _method(name: Any) -> type[Truncate] | type[Summarize]:
    if isinstance(name, str) and name in METHODS:
        return METHODS[name]
    raise InvalidValueError(f"compression method must be one of {', '.join(map(repr, METHODS))}, got {name!r:.80}")


def _known(method: type[Truncate] | type[Summarize], options: dict[str, Any]) -> dict[str, Any]:
    allowed = [option.name for option in fields(method)]
    for name in options:
        if name not in allowed:
            of = f"{method.__name__.lower()} takes {', '.join(map(repr, sorted(allowed)))}"
            raise InvalidValueError(f"unknown compression option {name!r}: {of}")
    return options
