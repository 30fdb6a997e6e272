"""How many tokens something is: estimated without any tokenizer, counted with one, and learnt from reports."""

from __future__ import annotations

from holdfast.tokens.estimator import TokenEstimator, estimate_input_tokens
from holdfast.tokens.exact import exact_counter
from holdfast.tokens.media import document_tokens, image_tokens
from holdfast.tokens.text import estimate_text
from holdfast.tokens.usage import Calibration, reported_input_tokens

__all__ = [
    "Calibration",
    "TokenEstimator",
    "document_tokens",
    "estimate_input_tokens",
    "estimate_text",
    "exact_counter",
    "image_tokens",
    "reported_input_tokens",
]
