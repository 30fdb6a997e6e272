"""A preview made: the kind's own previewer writes, and what it wrote is checked before it is used."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.errors import InvalidValueError
from holdfast.previews.blobs import preview_blob, preview_long_lines
from holdfast.previews.code import preview_code
from holdfast.previews.detection import detect_kind
from holdfast.previews.diffs import preview_diff
from holdfast.previews.failures import preview_failures
from holdfast.previews.html_text import preview_html
from holdfast.previews.json_values import preview_json
from holdfast.previews.listings import preview_listing
from holdfast.previews.logs import preview_log
from holdfast.previews.markdown import preview_markdown
from holdfast.previews.notebooks import preview_notebook
from holdfast.previews.plain import preview_plain
from holdfast.previews.room import Room, shortened
from holdfast.previews.rows import preview_json_lines, preview_table
from holdfast.previews.yaml_text import preview_yaml
from holdfast.tokens import estimate_text

__all__ = ["Preview", "make_preview"]

Previewer = Callable[[str, Room], "str | None"]

_logger = logging.getLogger(__name__)

_PREVIEWERS: dict[str, Previewer] = {
    "JSON": preview_json,
    "JSON lines": preview_json_lines,
    "CSV": preview_table,
    "TSV": preview_table,
    "YAML": preview_yaml,
    "notebook": preview_notebook,
    "HTML": preview_html,
    "XML": preview_html,
    "log": preview_log,
    "test output": preview_failures,
    "stack trace": preview_failures,
    "diff": preview_diff,
    "Markdown": preview_markdown,
    "listing": preview_listing,
    "grep output": preview_listing,
    "git log": preview_listing,
    "git blame": preview_listing,
    "base64": preview_blob,
    "hex": preview_blob,
    "data URL": preview_blob,
    "long lines": preview_long_lines,
}
_CUT = "… the rest of the preview is left out"
# What lines take together is not quite the sum of what each takes.
_SPARE = 30
_ENOUGH_TO_COMPARE = 1 << 16
# Characters that break terminals, logs and some providers' parsers: controls, and halves of surrogate pairs.
_UNSENDABLE = dict.fromkeys([*range(9), *range(11, 32), 127, *range(0xD800, 0xE000)], "\ufffd")


@dataclass(frozen=True)
class Preview:
    """What stands in for a large content: the *kind* it was taken for, and a *text* that shows what is in it."""

    kind: str
    text: str


def make_preview(
    text: str,
    content_type: str = "text/plain",
    *,
    tokens: int = 1500,
    count_text: Callable[[str], int] = estimate_text,
) -> Preview | None:
    """Return a preview of at most *tokens* tokens, or None if there is none that is smaller than *text*. Never fails.

    The time it takes is linear in the length of *text*.
    """
    if tokens < 0:
        raise InvalidValueError(f"tokens must be 0 or more, got {tokens}")
    for kind, write in _ways(detect_kind(text, content_type)):
        written = _written(write, text, Room(tokens - tokens // _SPARE, count_text))
        shown = _fitted(written.translate(_UNSENDABLE), tokens, count_text) if written else ""
        if shown:
            return Preview(kind, shown) if _is_smaller(shown, text, count_text) else None
    return None


def _ways(kind: str) -> Iterator[tuple[str, Previewer]]:
    """Yield the kinds to try: what was detected, and what any text can be taken for."""
    if kind.endswith(" source"):
        yield kind, preview_code
    elif kind in _PREVIEWERS:
        yield kind, _PREVIEWERS[kind]
    yield "long lines", preview_long_lines
    yield "text", preview_plain


def _written(write: Previewer, text: str, room: Room) -> str | None:
    try:
        return write(text, room)
    except Exception as error:  # No content may stop an agent, and there is always a plainer preview to fall back on.
        _logger.warning("%s failed, a plainer preview is used: %r", getattr(write, "__name__", write), error)
        return None


def _fitted(written: str, tokens: int, count_text: Callable[[str], int]) -> str:
    """Return what was written, cut at a line if it takes more than *tokens*; empty if nothing fits."""
    if count_text(written) <= tokens:
        return written
    lines = written.split("\n")
    kept = bisect_left(range(1, len(lines)), True, key=lambda kept: count_text(_cut(lines, kept)) > tokens)
    while kept:
        if count_text(cut := _cut(lines, kept)) <= tokens:
            return cut
        kept -= 1
    first = shortened(lines[0], tokens)
    return first if count_text(first) <= tokens else ""


def _cut(lines: list[str], kept: int) -> str:
    return "\n".join([*lines[:kept], _CUT])


def _is_smaller(shown: str, text: str, count_text: Callable[[str], int]) -> bool:
    size = count_text(shown)
    return size < count_text(text[:_ENOUGH_TO_COMPARE]) or (len(text) > _ENOUGH_TO_COMPARE and size < count_text(text))
