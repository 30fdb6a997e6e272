"""What each kind of text is recognised by, in a sample of its lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

from holdfast.previews.blobs import encodes_text
from holdfast.previews.languages import named_source, source_kind
from holdfast.previews.quoting import without_colours
from holdfast.previews.sampling import LONGEST, Sample

__all__ = ["SIGNS", "is_diff", "is_html", "is_json_lines", "is_notebook", "table_kind", "written_kind"]

_OPENS_JSON = re.compile(
    r'\{\s*(?:["}]|$)|\[\s*(?:[{\["\]]|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\s*[,\]]|true\b|false\b|null\b|$)'
)
_TAG = re.compile(r"<(?:!doctype|html|head|body|div|table|p|span|a|ul|ol|script|style|section)\b", re.IGNORECASE)
_OPENS_HTML = re.compile(
    r"(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--.{0,500}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_OPENS_XML = re.compile(r"<\?xml\b|<[A-Za-z][\w:.-]*(?:\s[^<>]{0,500})?>")
_DIFFED_FILE = re.compile(r"diff --git |diff -\w+ |Index: |--- \S")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_TESTED = re.compile(
    r"=+ (?:test session starts|FAILURES|ERRORS|short test summary|.{0,200}\d+ (?:passed|failed|error)).*=+$"
    r"|Ran \d+ tests? in |FAILED \((?:failures|errors)=|test result: (?:ok|FAILED)\."
    r"|--- (?:FAIL|PASS): |(?:FAIL|ok  )\t\S+\t|(?:Tests|Test Suites): .{0,80}\d+ total"
    r"|Tests run: \d+, Failures: \d+|not ok \d+ |\s+\d+ (?:passing|failing)\b"
)
_TRACED = re.compile(
    r"Traceback \(most recent call last\):|\s*File \"[^\"]+\", line \d+|\s+at [\w$.<>/ -]+\(.{0,200}\)|Caused by: "
    r"|panic: |goroutine \d+ \[|thread '.{0,80}' panicked at |[\w.$]{1,200}(?:Error|Exception)(?::|$)"
)
_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d?/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d"
    r"|\d\d:\d\d:\d\d"
)
_TIMED = re.compile(_TIME)
_LOGGED = re.compile(
    rf".{{0,60}}?(?:{_TIME})|\W{{0,2}}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b"
    r"|[IWEF]\d{4} \d\d:\d\d"
)
_BLAMED = re.compile(r"\^?[0-9a-f]{7,40} (?:\S+ +)?\(.{1,60}? +\d{4}-\d\d-\d\d.{0,20}? +\d+\) ?")
_COMMIT = re.compile(r"[*|\\/ ]{0,10}\b[0-9a-f]{7,40} +\S+ ")
_LONG_COMMIT = re.compile(r"commit [0-9a-f]{7,40}\b")
_FOUND = re.compile(
    r"(?:[\w@^~-]{1,80}:)?(?:[^\s:]{0,300}\.\w{1,10}|[^\s:]{0,300}/[^\s:]{1,300}|Makefile|Dockerfile)[:-]\d+[:-]|--$"
)
_LISTED = re.compile(
    r"[-dlbcps][-rwxsStT]{9}[.+@]?\s|\d{6} (?:blob|tree|commit) [0-9a-f]{7,64}\b|\d+\s+\./\S|total \d+$"
    r"|(?:\./|/)?[\w.@+,=%~-]+(?:/[\w.@+,=%~() -]+)+/?$|[\w.@+-]+\.\w{1,8}$"
)
_HEADING = re.compile(r"#{1,6} \S|<h[1-6][ >]", re.IGNORECASE)
_UNDERLINE = re.compile(r"={3,}$|-{3,}$")
_FENCE = re.compile(r"\s{0,3}(?:```|~~~)")
_MARKED_UP = re.compile(r"\s*(?:[-*+] \S|\d+\. \S|> |```|\|.*\|$)|.{0,300}\]\([^)\s]{1,500}\)|.{0,300}\*\*\S")
_FRONT_MATTER = re.compile(r"---\n(?:[^\n]{0,300}\n){1,60}?---\n")
_YAML = re.compile(
    r"\s*(?:- )*(?:\"[^\"]{1,200}\"|'[^']{1,200}'|[\w./@<$(+][^:#{}\[\]\"']{0,200}):(?: |$)|\s*- |\s*#|---$"
)
_DATA_URL = re.compile(r"data:[\w/+.-]{0,100}(?:;[\w=-]{1,60}){0,4},")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:]?){30,}")
_QUOTED = re.compile(r'"[^"]*"')
_DELIMITERS = {",": "CSV", "\t": "TSV", ";": "CSV", "|": "CSV"}
_FEWEST_ENCODED = 100


def is_json_lines(text: str, sample: Sample) -> bool:
    """Say whether most lines are objects. Lines too long for the sample count by how they begin."""
    if len(sample.lines) < 2 or not sample.lines[0].startswith("{"):
        return False
    shown = sample.share_of(lambda line: line[0] in "{[" and (line[-1] in "}]" or len(line) == LONGEST))
    whole = [line for line in sample.lines if len(line) < LONGEST][:20]
    return shown >= 0.8 and sum(map(_is_json_value, whole)) >= 0.8 * len(whole)


def _is_json_value(line: str) -> bool:
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


def is_notebook(text: str, sample: Sample) -> bool:
    """Say whether this is JSON with the two keys that every notebook has at its head or its end."""
    ends = text[:20_000] + text[-20_000:]
    return sample.start.startswith("{") and '"cells"' in ends and '"nbformat"' in ends


def _is_json(text: str, sample: Sample) -> bool:
    return _OPENS_JSON.match(sample.start) is not None


def is_html(text: str, sample: Sample) -> bool:
    """Say whether this begins as a page does, or holds a page's tags in many of its lines."""
    if _OPENS_HTML.match(sample.start):
        return True
    return sample.start.startswith("<") and sample.share_of(lambda line: _TAG.search(line) is not None) > 0.3


def _is_xml(text: str, sample: Sample) -> bool:
    return _OPENS_XML.match(sample.start) is not None and sample.share_of(lambda line: "<" in line) > 0.4


def is_diff(text: str, sample: Sample) -> bool:
    """Say whether files and hunks are named, and most lines are of hunks."""
    changed = sample.share_of(lambda line: line[0] in "+-@ " or line.startswith("diff "))
    named = bool(sample.count(_DIFFED_FILE) and sample.count(_HUNK))
    return (named and changed > 0.5) or (sample.start.startswith("diff --git ") and changed > 0.3)


def _is_blame(text: str, sample: Sample) -> bool:
    return sample.share(_BLAMED) > 0.8


def _is_grep(text: str, sample: Sample) -> bool:
    return sample.share(_FOUND) > 0.8


def _is_git_log(text: str, sample: Sample) -> bool:
    return sample.share(_COMMIT) > 0.9 or (sample.start.startswith("commit ") and sample.count(_LONG_COMMIT) > 1)


def _is_test_output(text: str, sample: Sample) -> bool:
    if not any(_TESTED.match(without_colours(line)) for line in sample.lines):
        return False
    # Documents and sources quote such lines too.
    return source_kind(sample) is None and _headings(sample) < 0.1


def _is_log(text: str, sample: Sample) -> bool:
    """Say whether lines begin with a time or a level, or are indented below lines that begin with a time."""
    share = sample.share(_LOGGED)
    records = share > 0.01 and sample.share_of(lambda line: line[0] in " \t" or _TIMED.match(line) is not None) > 0.9
    if share <= 0.6 and not records:
        return False
    return table_kind(sample) is None or _LOGGED.match(sample.lines[0]) is not None


def _is_trace(text: str, sample: Sample) -> bool:
    return sample.share(_TRACED) > 0.15


def _is_listing(text: str, sample: Sample) -> bool:
    return len(sample.lines) > 3 and sample.share(_LISTED) > 0.8


def _is_base64(text: str, sample: Sample) -> bool:
    body = [line for line in sample.lines if not line.startswith("-----")]
    start = "".join(body)[:400]
    if len(start) < _FEWEST_ENCODED or not all(map(_BASE64.fullmatch, body[:-1] or body)):
        return False
    return len(set(start)) > 20 or encodes_text(start)


def _is_hex(text: str, sample: Sample) -> bool:
    lines = sample.lines[:-1] or sample.lines
    return len(sample.start) >= _FEWEST_ENCODED and all(_HEX.fullmatch(f"{line} ") for line in lines)


def _is_data_url(text: str, sample: Sample) -> bool:
    return _DATA_URL.match(sample.start) is not None


def table_kind(sample: Sample) -> str | None:
    """Return the kind of table whose delimiter stands equally often in nearly all lines."""
    if len(sample.lines) < 3:
        return None
    bare = [_QUOTED.sub("", line) if '"' in line else line for line in sample.lines]
    for delimiter, kind in _DELIMITERS.items():
        columns, lines = Counter(line.count(delimiter) for line in bare).most_common(1)[0]
        # Two columns are soon had: many a sentence has one comma.
        if columns and delimiter in bare[0] and lines >= (0.95 if columns == 1 else 0.8) * len(bare):
            return kind
    return None


def _headings(sample: Sample) -> float:
    """Return the share of headings. Lines with '#' one after another are comments."""
    found = 0
    for before, line, after in zip(("", *sample.lines), sample.lines, (*sample.lines[1:], ""), strict=False):
        if _HEADING.match(line):
            found += not (line[0] == before[:1] == "#" and before[1:2] != "#") and not after.startswith("# ")
        elif _UNDERLINE.match(line):
            found += abs(len(before) - len(line)) <= 3
    return found / len(sample.lines)


def _is_one_long_line(sample: Sample) -> bool:
    return len(sample.lines) == 1 and len(sample.lines[0]) == LONGEST


def written_kind(sample: Sample, content_type: str) -> str | None:
    """Return what people write: a document, a configuration or a source. Else it may be lines too long to read."""
    if (named := named_source(content_type)) is not None:
        return named
    headings, code_ends = _headings(sample), sample.share_of(lambda line: line.endswith((";", "{")))
    marked = 2 * headings + sample.share(_MARKED_UP)
    source = source_kind(sample)
    if headings and (sample.count(_FENCE) > 1 or (headings > 0.01 and marked > 0.3 and code_ends < 0.3 and not source)):
        return "Markdown"
    if (
        not _is_one_long_line(sample)
        and sample.share(_YAML) > 0.85
        and sample.share_of(lambda line: line.endswith((";", "{", ","))) < 0.2
    ):
        return "YAML"
    if _FRONT_MATTER.match(sample.start):
        return "Markdown"
    if source is not None:
        return source
    if headings and marked > 0.1:
        return "Markdown"
    return "long lines" if max(map(len, sample.lines)) == LONGEST else None


SIGNS: tuple[tuple[str, Callable[[str, Sample], bool]], ...] = (
    ("data URL", _is_data_url),
    ("hex", _is_hex),
    ("base64", _is_base64),
    ("JSON lines", is_json_lines),
    ("notebook", is_notebook),
    ("JSON", _is_json),
    ("HTML", is_html),
    ("diff", is_diff),
    ("git blame", _is_blame),
    ("grep output", _is_grep),
    ("git log", _is_git_log),
    ("test output", _is_test_output),
    ("log", _is_log),
    ("stack trace", _is_trace),
    ("listing", _is_listing),
    ("XML", _is_xml),
)
"""Kinds with what tells them, in the order in which they are tried: what is hardest to mistake comes first."""
