"""Which kind of text something is, told by its content type and by a bounded look at the text itself."""

from __future__ import annotations

import re

from holdfast.previews.sampling import Sample, sample_of
from holdfast.previews.signs import SIGNS, is_diff, is_html, is_json_lines, is_notebook, table_kind, written_kind

__all__ = ["detect_kind"]

_BY_CONTENT_TYPE = (
    (re.compile(r"ipynb"), "notebook"),
    (re.compile(r"ndjson|jsonl|json-lines|json-seq"), "JSON lines"),
    (re.compile(r"json"), "JSON"),
    (re.compile(r"text/csv|/vnd\.ms-excel"), "CSV"),
    (re.compile(r"tab-separated|text/tsv"), "TSV"),
    (re.compile(r"html"), "HTML"),
    (re.compile(r"[/+]xml|svg"), "XML"),
    (re.compile(r"markdown"), "Markdown"),
    (re.compile(r"yaml"), "YAML"),
    (re.compile(r"diff|patch"), "diff"),
    (re.compile(r"/x-log|text/log"), "log"),
)


def detect_kind(text: str, content_type: str = "text/plain") -> str:
    """Return the kind of *text*, such as 'JSON', 'log' or 'Python source'; 'text' if it is no other. Never fails."""
    sample = sample_of(text)
    if not sample.lines:
        return "text"
    named = _named_kind(content_type)
    if named is not None and _is_believed(named, text, sample):
        return "notebook" if named == "JSON" and is_notebook(text, sample) else named
    seen = next((kind for kind, holds in SIGNS if holds(text, sample)), None)
    return seen or table_kind(sample) or written_kind(sample, content_type) or "text"


def _named_kind(content_type: str) -> str | None:
    bare = content_type.split(";")[0].strip().lower()
    return next((kind for pattern, kind in _BY_CONTENT_TYPE if pattern.search(bare)), None)


def _is_believed(kind: str, text: str, sample: Sample) -> bool:
    """Say whether the content agrees with its type: servers name types that their error pages are not of."""
    opening = sample.start[:1]
    match kind:
        case "JSON" | "notebook":
            return opening in "{[" and not is_json_lines(text, sample)
        case "JSON lines":
            return opening in "{["
        case "HTML" | "XML":
            return "<" in sample.start
        case "diff":
            return is_diff(text, sample)
        case "CSV" | "TSV":
            return opening not in "{<" and any(mark in sample.lines[0] for mark in ",;\t|")
    return opening not in "{<" or not is_html(text, sample)
