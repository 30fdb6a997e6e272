"""What holdfast itself writes into a conversation: none of it is a fact of the conversation's."""

from __future__ import annotations

import re

__all__ = ["names_a_batch", "without_furniture", "without_notes"]

_SIGNS = ("[Offloaded as ", "[Previews leave ", " left out")
_LINES = re.compile(
    # A reference may be referred to; nothing else of a preview's first line is of use then.
    r"^(?:\[Offloaded as (?P<reference>[^\n]{1,1000}?) : [^\n]*|\[End of the preview\.\]"
    r"|\[Previews leave things out\.[^\n]*|… [^\n]{1,100} left out …"
    r"|\[[^\n\]]{1,100}: left out to save space[^\n]*)$",
    re.MULTILINE,
)
_CUT = re.compile(r"\n\[… [\d,]{1,20} characters left out[^\n]*\]\n")
_NOTE = re.compile(r"^\[[A-Z…][^\n]*\]$", re.MULTILINE)
_BATCH = re.compile(r"history-[0-9a-f]{6}-\d+")


def without_furniture(text: str) -> str:
    """Return a tool's result without the lines that a preview or a cut adds; references of what is offloaded stay."""
    if not any(sign in text for sign in _SIGNS):
        return text
    return _without_cuts(_LINES.sub(lambda line: f"{line['reference'] or ''} ", text))


def _without_cuts(text: str) -> str:
    """Return what stands around cuts, without what they may have cut in two."""
    parts = _CUT.split(text)
    for number in range(len(parts) - 1):
        parts[number] = _without_last_word(parts[number])
        parts[number + 1] = _without_last_word(parts[number + 1][::-1])[::-1]
    return "\n".join(parts)


def _without_last_word(text: str) -> str:
    return text if text[-1:].isspace() else " ".join(text.rsplit(maxsplit=1)[:-1])


def without_notes(text: str) -> str:
    """Return a result of one of holdfast's own tools without what it says about itself."""
    return _NOTE.sub("", without_furniture(text))


def names_a_batch(value: str) -> bool:
    """Say whether a value names messages that left: there is always a later batch, and a marker that names it."""
    return "history-" in value and _BATCH.search(value) is not None
