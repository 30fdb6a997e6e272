"""Summaries as messages of the history: text in tags that only holdfast writes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.compression.summary_request import SummaryRequest, without_tags
from holdfast.messages import SUMMARY, Message

__all__ = [
    "KEPT_FACTS",
    "TOKENS_OF_TAGS",
    "Known",
    "known_in",
    "summary_in",
    "summary_message",
    "summary_text",
    "untagged",
    "without_list",
]

KEPT_FACTS = "Kept facts:"
"""The title of the list behind a summary: all lines below it that begin with a dash are its."""

TOKENS_OF_TAGS = 20

_TAGGED = re.compile(r"\s*<summary>\n?(.*?)\n?</summary>\s*", re.DOTALL)


def summary_in(message: Message) -> str | None:
    """Return the summary that a message holds, if holdfast made it as one, without what stands behind it."""
    if message.made_as != SUMMARY:
        return None
    # Inside of a summary no tag can stand, so the first that ends one ends this one.
    found = _TAGGED.match(message.text)
    return message.text if found is None else found[1]


class Known(NamedTuple):
    """What earlier summaries say in their own words, and the lines that were listed behind these."""

    words: str = ""
    listed: str = ""

    @property
    def whole(self) -> str:
        """Both as one summary."""
        listed = f"{KEPT_FACTS}\n{self.listed}" if self.listed else ""
        return "\n".join(filter(None, (self.words, listed)))


def known_in(messages: Iterable[Message]) -> Known:
    """Return what earlier summaries among *messages* say."""
    known = [_apart(summary) for message in messages if (summary := summary_in(message)) is not None]
    words, listed = (part.words for part in known), (part.listed for part in known)
    return Known("\n".join(filter(None, words)), "\n".join(filter(None, listed)))


def _apart(summary: str) -> Known:
    words: list[str] = []
    listed: list[str] = []
    is_list = False
    for line in summary.split("\n"):
        is_title = line == KEPT_FACTS
        is_list = is_title or (is_list and line.startswith("- "))
        if not is_title:
            (listed if is_list else words).append(line)
    return Known("\n".join(words), "\n".join(listed))


def without_list(answer: str, listed: str) -> str:
    """Return what a summarizer answered without a list of facts that it took over: that is made anew each time.

    Only the title and lines of the earlier list leave: what a summarizer itself writes there is its own.
    """
    lines = answer.split("\n")
    if KEPT_FACTS not in map(str.strip, lines):
        return answer
    leaving = {KEPT_FACTS, *listed.splitlines()}
    return "\n".join(line for line in lines if line.strip() not in leaving)


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


def summary_message(inner: str) -> Message:
    """Return the message that holds a summary."""
    return Message.of_text("user", f"<summary>\n{inner}\n</summary>", made_as=SUMMARY)


def untagged(text: str) -> str:
    """Return what a summarizer answered, without tags around it."""
    return (text if (found := _TAGGED.fullmatch(text)) is None else found[1]).strip()
