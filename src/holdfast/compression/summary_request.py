"""What a summarizer is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.compression.shortening import shortened
from holdfast.messages import (
    Block,
    Document,
    Image,
    Json,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolResult,
    ToolUse,
    as_json_text,
)
from holdfast.names import Names
from holdfast.tokens import TokenEstimator

__all__ = ["SUMMARY_PROMPT", "SummaryRequest", "without_tags"]

SUMMARY_PROMPT = """You write the notes with which an agent goes on working after its conversation was shortened.

Write bullet points under these headings, and leave out a heading that has nothing:
- Task: what the user wants, in the user's words where they matter, and every constraint that was named.
- Done: what was decided and done, and what came of it.
- Facts: every value that may be needed again, exactly as it was: names, paths, ids, numbers, addresses, errors.
- Open: what is unfinished, what failed and why, and what comes next.

Write in the third person. Do not address anybody, do not comment on tools that are or are not available, and do not
assume that a call failed unless its result says so. What is known so far is still true unless something later
contradicts it: take it over, and do not write that it comes from a summary."""

_LONGEST_RESULT = 400
_TAGS = re.compile(r"<(/?(?:summary|conversation|known_so_far)>)")
_TOKENS_AROUND = 60


@dataclass(frozen=True, kw_only=True)
class SummaryRequest:
    """Messages that are about to leave, and what was known before them.

    The summary should have at most *longest* tokens. `prompt` is all of it as one text, of at most *readable* tokens,
    to be sent to any model under *system_prompt*.
    """

    system_prompt: str
    known: str
    messages: tuple[Message, ...]
    longest: int
    readable: int
    estimator: TokenEstimator = field(default_factory=TokenEstimator, repr=False, compare=False)
    names: Names = field(default_factory=Names, repr=False, compare=False)

    @property
    def prompt(self) -> str:
        """The request in words, with long tool results shortened."""
        known = f"<known_so_far>\n{without_tags(self.known)}\n</known_so_far>\n\n" if self.known else ""
        return (
            f"{known}<conversation>\n{without_tags(self._transcript())}\n</conversation>\n\n"
            f"Summarize the conversation in at most {self.longest:,} tokens."
        )

    def _transcript(self) -> str:
        said = [_rendered(shortened(message, _LONGEST_RESULT, self.estimator, self.names)) for message in self.messages]
        text = "\n\n".join(said)
        tokens, room = self.estimator.text(text), self._room()
        if tokens <= room:
            return text
        half = len(text) * room // tokens // 2
        return f"{text[:half]}\n\n[… the middle of the conversation is left out …]\n\n{text[len(text) - half :]}"

    def _room(self) -> int:
        """Return how many tokens are left for the conversation beside everything else that is sent."""
        others = self.estimator.text(self.system_prompt) + self.estimator.text(self.known) + _TOKENS_AROUND
        return max(self.readable - others, _LONGEST_RESULT)


def without_tags(text: str) -> str:
    """Return *text* so that it cannot end what it stands in: tags that mean something here lose their bracket."""
    return _TAGS.sub(r"(\1", text)


def _rendered(message: Message) -> str:
    return f"[{message.role}]\n" + "\n".join(line for block in message.blocks for line in _lines(block))


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Text(text):
            yield text
        case ToolUse(_, name, arguments):
            yield f"(calls {name}: {arguments if isinstance(arguments, str) else as_json_text(arguments)})"
        case ToolResult(_, content, is_error):
            yield "(fails with)" if is_error else "(result)"
            for part in content:
                yield from _lines(part)
        case Json(value):
            yield as_json_text(value)
        case Image() | Document():
            yield f"({block.media_type or 'a file'})"
        case Reasoning() | Opaque():
            return
