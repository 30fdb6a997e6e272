"""Providers' message formats, read into `holdfast.messages` and written back."""

from __future__ import annotations

from holdfast.dialects.anthropic import Anthropic
from holdfast.dialects.converse import Converse
from holdfast.dialects.detection import dialect_named, dialect_of
from holdfast.dialects.legal_results import legal_result
from holdfast.dialects.openai import OpenAI
from holdfast.dialects.protocol import Dialect
from holdfast.dialects.results import GivenResult, read_result
from holdfast.dialects.wires import sendable

__all__ = [
    "Anthropic",
    "Converse",
    "Dialect",
    "GivenResult",
    "OpenAI",
    "dialect_named",
    "dialect_of",
    "legal_result",
    "read_result",
    "sendable",
]
