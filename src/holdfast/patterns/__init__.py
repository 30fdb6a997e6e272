"""Where lines are in a content, and which of them match a pattern that nobody vouches for."""

from __future__ import annotations

from holdfast.patterns.compiling import LineMatch, Matches, Pattern, Spans, compile_pattern
from holdfast.patterns.lines import LineIndex

__all__ = ["LineIndex", "LineMatch", "Matches", "Pattern", "Spans", "compile_pattern"]
