"""Summaries as messages of the history: text in tags that only holdfast writes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from holdfast.compression.summary_request import SummaryRequest, without_tags
from holdfast.messages import SUMMARY, Message

__all__ = [
    "TOKENS_OF_TAGS",
    "known_in",
    "summary_in",
    "summary_message",
    "summary_text",
    "untagged",
]

_EXTRACT = "[Lines from the removed messages:]"
TOKENS_OF_TAGS = 20

_TAGGED = re.compile(r"\s*<summary>\n?(.*?)\n?</summary>\s*", re.DOTALL)


def summary_in(message: Message) -> str | None:
    """Return the summary that a message holds, if holdfast made it as one, without what stands behind it."""
    if message.made_as != SUMMARY:
        return None
    # Inside of a summary no tag can stand, so the first that ends one ends this one.
    found = _TAGGED.match(message.text)
    return message.text if found is None else found[1]


def known_in(messages: Iterable[Message]) -> str:
    """Return what earlier summaries among *messages* say."""
    return "\n".join(summary for message in messages if (summary := summary_in(message)))


def summary_text(text: str, request: SummaryRequest) -> str:
    """Return what a summarizer answered as it may stand in a message; what is longer than was asked for is cut."""
    inner = without_tags(untagged(text)).encode("utf-8", "replace").decode()
    count, longest = request.estimator.text, request.longest
    cut, tokens = inner, count(inner)
    while cut and tokens > longest:
        inner = inner[: min(len(inner) * longest // tokens, len(inner) - 1)]
        cut = f"{inner} […]" if inner else ""
        tokens = count(cut)
    return cut


def summary_message(inner: str, extract: str = "") -> Message:
    """Return the message that holds a summary, and behind it an extract of what it is about."""
    behind = f"\n{_EXTRACT}\n{without_tags(extract)}" if extract else ""
    return Message.of_text("user", f"<summary>\n{inner}\n</summary>{behind}", made_as=SUMMARY)


def untagged(text: str) -> str:
    """Return what a summarizer answered, without tags around it."""
    return (text if (found := _TAGGED.fullmatch(text)) is None else found[1]).strip()
