"""Keeping a history within its window: what stays, what leaves, and in which order."""

from __future__ import annotations

from holdfast.compression.config import CompressionConfig, Compressor, compressor_from
from holdfast.compression.extractive import extractive_summary
from holdfast.compression.foresight import NextReduction, next_reduction, protected_in
from holdfast.compression.keeping import CompressionEvent, Keeping, NotKept, Reduced, ReductionFailed, SummaryFailed
from holdfast.compression.pins import pin_message, set_pins
from holdfast.compression.plans import Drop, Edit, Insert, Plan, Rewrite, apply
from holdfast.compression.plugin import ContextCompression
from holdfast.compression.protection import Protection, survives_compression
from holdfast.compression.summarize import Summarize, Summarizer, summary_in
from holdfast.compression.summary_request import SUMMARY_PROMPT, SummaryRequest
from holdfast.compression.truncate import Truncate
from holdfast.compression.window import ContextWindow
from holdfast.cuts import legal_cuts

__all__ = [
    "SUMMARY_PROMPT",
    "CompressionConfig",
    "CompressionEvent",
    "Compressor",
    "ContextCompression",
    "ContextWindow",
    "Drop",
    "Edit",
    "Insert",
    "Keeping",
    "NextReduction",
    "NotKept",
    "Plan",
    "Protection",
    "Reduced",
    "ReductionFailed",
    "Rewrite",
    "Summarize",
    "Summarizer",
    "SummaryFailed",
    "SummaryRequest",
    "Truncate",
    "apply",
    "compressor_from",
    "extractive_summary",
    "legal_cuts",
    "next_reduction",
    "pin_message",
    "protected_in",
    "set_pins",
    "summary_in",
    "survives_compression",
]
