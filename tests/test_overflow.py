"""Errors that mean that a request was too long, and what they say."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import ContextOverflowError
from holdfast.overflow import Figures, figures_in, is_context_overflow

OVERFLOWS = {
    "anthropic": ("prompt is too long: 208310 tokens > 200000 maximum", Figures(208_310, 200_000)),
    "anthropic with an answer": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        Figures(190_000, 200_000),
    ),
    "openai": (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens. "
        "Please reduce the length of the messages.",
        Figures(131_072, 128_000),
    ),
    "openai with an answer": (
        "This model's maximum context length is 8,192 tokens. However, you requested 9,000 tokens (8,500 in the "
        "messages, 500 in the completion). Please reduce the length of the messages or completion.",
        Figures(8_500, 8_192),
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in the messages, "
        "Please reduce the length of the messages.",
        Figures(5_000, 4_096),
    ),
    "gemini": (
        "The input token count (1234567) exceeds the maximum number of tokens allowed (1048576).",
        Figures(1_234_567, 1_048_576),
    ),
    "bedrock": ("An error occurred (ValidationException): Input is too long for requested model.", Figures()),
    "bedrock, other models": ("The model returned the following errors: too many input tokens", Figures()),
    "llama.cpp": ("the request exceeds the available context size, try increasing it", Figures()),
}

OTHERS = [
    "connection reset by peer",
    "Too many requests",
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "Too many tokens per day, please wait before trying again.",
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 4000.",
    "This request would exceed your organization's rate limit of 40,000 input tokens per minute",
    "max_tokens: 200000 > 8192, which is the maximum allowed number of output tokens",
    "context deadline exceeded",
    "",
]


@pytest.mark.parametrize(("words", "figures"), OVERFLOWS.values(), ids=OVERFLOWS)
def test_every_providers_words_are_known_and_their_figures_read(words, figures):
    assert is_context_overflow(RuntimeError(words))
    assert figures_in(RuntimeError(words)) == figures


@pytest.mark.parametrize("words", OTHERS)
def test_other_failures_are_no_overflow(words):
    assert not is_context_overflow(RuntimeError(words))


@pytest.mark.parametrize(
    "name", ["ContextWindowOverflowException", "ContextWindowExceededError", "ContextLengthExceededError"]
)
def test_frameworks_errors_are_known_by_name(name):
    assert is_context_overflow(type(name, (Exception,), {})())


def test_our_own_error_is_one():
    assert is_context_overflow(ContextOverflowError("it does not fit", 10, 5))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("context_length_exceeded", True),
        ("model_context_window_exceeded", True),
        ("rate_limit_exceeded", False),
        (400, False),
        (None, False),
        (["context_length_exceeded"], False),
        ({}, False),
    ],
)
def test_codes_are_known_too(code, expected):
    error = RuntimeError("Error code: 400")
    error.code = code
    assert is_context_overflow(error) is expected


def chained(error, *, cause=None, context=None, suppress=False):
    error.__context__ = context
    if cause is not None or suppress:
        error.__cause__ = cause
    return error


def test_what_wraps_an_overflow_is_one_and_has_its_figures():
    overflow = RuntimeError(OVERFLOWS["anthropic"][0])
    for wrapped in (chained(ValueError("?"), cause=overflow), chained(ValueError("?"), context=overflow)):
        assert is_context_overflow(wrapped)
        assert figures_in(wrapped) == Figures(208_310, 200_000)


def test_an_error_that_was_raised_from_none_stands_for_itself():
    overflow = RuntimeError(OVERFLOWS["anthropic"][0])
    assert not is_context_overflow(chained(ValueError("handled"), context=overflow, suppress=True))


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit])
def test_whoever_stops_the_program_while_an_overflow_is_handled_is_obeyed(stop):
    assert not is_context_overflow(chained(stop(), context=RuntimeError(OVERFLOWS["anthropic"][0])))


def test_errors_that_cause_each_other_end_somewhere():
    first, second = RuntimeError("a"), RuntimeError("b")
    first.__cause__, second.__cause__ = second, first
    assert not is_context_overflow(first)
    assert figures_in(first) == Figures()


def test_no_error_is_no_overflow():
    assert not is_context_overflow(None)
    assert figures_in(None) == Figures()


def test_a_huge_message_is_looked_at_in_part():
    assert not is_context_overflow(RuntimeError("context " * 1_000_000))
