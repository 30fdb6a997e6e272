"""Histories of agents, as a provider would get them, for property tests: one grammar, drawn in two ways.

`random_history` is fast enough for tens of thousands in a test run; `histories` is a hypothesis strategy that shrinks.
Both vary what breaks managers of context: parallel calls, repeated ids, huge results, odd scripts, images, reasoning.

    >>> from random import Random
    >>> random_history(Random(7), "openai", max_turns=0)[-1]["role"]
    'user'
"""

from __future__ import annotations

from holdfast.testing.histories.grammar import Dialect, histories, random_history, without_metadata

__all__ = ["Dialect", "histories", "random_history", "without_metadata"]
