"""What a ContextManager does that is told nothing, in one place. The documentation's table is checked against it."""

from __future__ import annotations

__all__ = [
    "ANSWER_TOKENS",
    "EVICT_AFTER_TURNS",
    "LOW_WATER",
    "MARKER_TOKENS",
    "METHOD",
    "PREVIEW_TOKENS",
    "THRESHOLD",
    "TRIGGER",
    "WINDOW",
    "WINDOW_SIZE",
]

THRESHOLD = 2_500
"""A tool's result of more tokens leaves the window."""

PREVIEW_TOKENS = 1_500
"""What is left of it in the window has at most so many tokens."""

METHOD = "truncate"
"""How history becomes smaller."""

WINDOW_SIZE = 40
"""So many messages stay after an invocation."""

TRIGGER = 0.7
"""From this share of the window on, history is reduced before a model call."""

LOW_WATER = 0.35
"""Down to this share of the window."""

MARKER_TOKENS = 2_500
"""What stands for all removed messages has at most so many tokens, and at most a twelfth of the window."""

WINDOW = 128_000
"""What a model is taken for to hold, if nobody knows."""

ANSWER_TOKENS = 4_096
"""What is kept free for an answer, if nobody knows how long it may get."""

EVICT_AFTER_TURNS = 20
"""After so many turns without use, memory forgets what was offloaded."""
