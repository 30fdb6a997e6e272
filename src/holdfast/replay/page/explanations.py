"""The end of the page: what its words mean."""

from __future__ import annotations

from holdfast.replay.page.markup import Markup, cut, element, join
from holdfast.replay.page.report import Report

__all__ = ["how_to_read"]

_TERMS = (
    (
        "Replay",
        "Each recording is lived through again under each policy, call by call. No model is asked: all answers are "
        "those of the recording.",
    ),
    (
        "Above the window",
        "A provider refuses such a request. Without a manager the replay goes on all the same, so that policies can be "
        "compared; under a manager a run ends if nothing more can leave.",
    ),
    (
        "Prefix reuse",
        "A provider's cache serves a request as far as it begins like one before it. Whatever changes what was sent "
        "makes the rest of the request new, and new tokens cost many times as much.",
    ),
    (
        "The bill",
        "It is for what is sent. The answers of models are not in it: they are the same under every policy.",
    ),
    (
        "Values",
        "Paths, names, numbers and the like that the agent used in a call long after it had last seen them.",
    ),
    (
        "One look-up away",
        "No longer in the window, but in the answer of search_context to the words of that call, or on a page of what "
        "stands behind a reference in the window: the first page, or that of the lines with these words.",
    ),
    (
        "Lost",
        "Neither of the two. More look-ups may still bring it back; the table says how often.",
    ),
)


def how_to_read(report: Report) -> Markup:
    """Return the terms and their meanings."""
    terms = (("Tokens", _tokens(report.tokens)), *_TERMS)
    return element("dl", *(join(element("dt", term), element("dd", meaning)) for term, meaning in terms))


def _tokens(counted_with: str) -> str:
    if counted_with == "estimated":
        return "Estimated from the text, without a tokenizer; what a provider counts differs by some percent."
    return f"Counted with {cut(counted_with, 40)}; a provider with another tokenizer counts differently."
