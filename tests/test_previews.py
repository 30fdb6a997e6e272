"""Previews: any content gets one that fits, that is smaller than the content, or none at all."""

from __future__ import annotations

import base64
import json
import logging
import random
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError
from holdfast.previews import Preview, detect_kind, make_preview, making
from holdfast.tokens import estimate_text

_LIMIT_IN_SECONDS = 20.0

_LOG = "\n".join(
    f"2024-03-01 10:{at // 60:02}:{at % 60:02} {'ERROR' if at % 50 == 7 else 'INFO'} worker: job {at} took {at} ms"
    for at in range(600)
)
_DIFF = "".join(
    f"diff --git a/src/m{at}.py b/src/m{at}.py\n--- a/src/m{at}.py\n+++ b/src/m{at}.py\n@@ -1,2 +1,2 @@ def f{at}():\n"
    f" same\n-old_{at}\n+new_{at}\n"
    for at in range(80)
)
_TESTS = (
    "============ test session starts ============\ncollected 300 items\n"
    + "".join(f"tests/test_m{at}.py::test_{at} PASSED\n" for at in range(300))
    + "=========== FAILURES ===========\n______ test_7 ______\nE   assert 1 == 2\ntests/test_m7.py:12: AssertionError\n"
    + "FAILED tests/test_m7.py::test_7 - assert 1 == 2\n======== 1 failed, 299 passed in 3.21s ========\n"
)
_TRACE = (
    "Traceback (most recent call last):\n"
    + "".join(f'  File "/app/m{at}.py", line {at}, in f{at}\n    f{at + 1}()\n' for at in range(200))
    + "ValueError: the last word\n"
)
_MARKDOWN = "".join(
    f"## Part {at}\n\nSome **text** about thing{at} and [more](http://x/{at}).\n\n" for at in range(200)
)
_PYTHON = "import os\n\n" + "".join(f"def function_{at}(value):\n    return value + {at}\n\n\n" for at in range(200))
_YAML = "".join(f"service{at}:\n  image: repo/app:{at}\n  ports:\n    - {8000 + at}\n" for at in range(200))
_HTML = "<!doctype html><html><head><title>T</title></head><body>" + "<p>Hello there</p>\n" * 500 + "</body></html>"
_SQL = "".join(f"CREATE TABLE t{at} (\n  id integer PRIMARY KEY,\n  name text\n);\n" for at in range(150))
_GREP = "".join(f"src/pkg/m{at % 9}.py:{at}:    value_{at} = compute({at})\n" for at in range(400))
_GIT_LOG = "".join(f"{at * 7919:09x} fix: repair part {at} of the machine\n" for at in range(400))
_BLAME = "".join(
    f"{at // 5 * 104729:010x} (Ann Author {2020 + at % 5}-01-02 {at + 1}) x{at} = {at}\n" for at in range(500)
)
_LS = "total 400\n" + "".join(f"-rw-r--r-- 1 me me {at * 31} Jan  2 10:11 file{at}.txt\n" for at in range(400))
_FILES = "".join(f"src/dir{at % 20}/file{at}.py\n" for at in range(500))
_CONTENTS = {
    "JSON": json.dumps([{"id": at, "name": f"thing {at}"} for at in range(500)]),
    "JSON lines": "".join(json.dumps({"id": at, "event": "x"}) + "\n" for at in range(500)),
    "notebook": json.dumps(
        {"cells": [{"cell_type": "code", "source": ["x = 1\n"] * 40, "outputs": []}] * 40, "nbformat": 4}
    ),
    "CSV": "name,size,when\n" + "".join(f"n{at},{at},2024-01-02\n" for at in range(500)),
    "TSV": "name\tsize\n" + "".join(f"n{at}\t{at}\n" for at in range(700)),
    "YAML": _YAML,
    "HTML": _HTML,
    "Python source": _PYTHON,
    "SQL source": _SQL,
    "log": _LOG,
    "test output": _TESTS,
    "stack trace": _TRACE,
    "diff": _DIFF,
    "Markdown": _MARKDOWN,
    "grep output": _GREP,
    "git log": _GIT_LOG,
    "git blame": _BLAME,
    "listing": _FILES,
    "base64": base64.b64encode(random.Random(1).randbytes(9_000)).decode(),
    "hex": random.Random(1).randbytes(9_000).hex(),
    "data URL": "data:image/png;base64," + base64.b64encode(b"\x89PNG" + bytes(9_000)).decode(),
    "long lines": "!function(){var a=1;" + "a=a+1;b(a);" * 2_000,
    "text": "This is a sentence that tells one thing.\n" * 500,
}
_TYPES = [
    "text/plain",
    "application/json",
    "application/x-ndjson",
    "text/csv",
    "text/tab-separated-values",
    "text/html; charset=utf-8",
    "application/xml",
    "text/markdown",
    "application/yaml",
    "text/x-diff",
    "text/x-python",
    "application/sql",
    "application/x-ipynb+json",
    "text/x-log",
    "",
    ";;;",
]


@pytest.mark.parametrize("kind", _CONTENTS)
def test_a_kind_is_told_by_its_content_alone(kind: str) -> None:
    assert detect_kind(_CONTENTS[kind]) == kind


@pytest.mark.parametrize("kind", _CONTENTS)
def test_every_kind_gets_a_preview_that_fits_and_is_smaller(kind: str) -> None:
    for tokens in (1500, 300, 60):
        preview = make_preview(_CONTENTS[kind], tokens=tokens)
        assert preview is None or estimate_text(preview.text) <= min(tokens, estimate_text(_CONTENTS[kind]) - 1)
    assert (preview := make_preview(_CONTENTS[kind], tokens=600)) is not None
    assert preview.kind == kind


def test_an_ls_is_a_listing() -> None:
    assert detect_kind(_LS) == "listing"


def test_a_content_type_decides_where_the_content_allows_it() -> None:
    assert detect_kind("a: 1\nsome words\nmore words\n", "application/yaml") == "YAML"
    assert detect_kind("just a few words\n" * 9, "text/markdown; charset=utf-8") == "Markdown"
    assert detect_kind("x = 1\n" * 9, "text/x-python") == "Python source"


def test_an_error_page_is_a_page_whatever_type_was_named() -> None:
    for content_type in ("application/json", "text/csv", "application/yaml", "text/x-diff"):
        assert detect_kind(_HTML, content_type) == "HTML"


def test_json_that_was_cut_is_still_json() -> None:
    assert detect_kind(_CONTENTS["JSON"][:5_000]) == "JSON"


def test_lines_that_begin_with_a_bracketed_time_are_a_log_and_not_json() -> None:
    assert detect_kind("".join(f"[2024-01-01 10:00:{at % 60:02}] started {at}\n" for at in range(99))) == "log"


def test_a_csv_whose_first_column_is_a_time_is_a_table() -> None:
    rows = "".join(f"2024-01-01 10:00:{at % 60:02},{at},{at * 2}\n" for at in range(99))
    assert detect_kind("when,count,size\n" + rows) == "CSV"


def test_encoded_text_is_base64_however_few_letters_it_has() -> None:
    assert detect_kind("QUJD" * 1_000_000) == "base64"
    assert detect_kind("ACGT" * 100_000) != "base64"


def test_one_huge_line_with_a_colon_is_no_yaml() -> None:
    assert detect_kind("lambda x: " + "x + " * 10_000 + "1") != "YAML"


def test_a_content_type_that_names_a_source_decides_over_what_looks_like_yaml() -> None:
    assert detect_kind("def f():\n" * 100, "text/x-python") == "Python source"


def test_small_content_needs_no_preview() -> None:
    assert make_preview("short") is None
    assert make_preview("") is None
    assert make_preview("\n" * 50) is None


def test_without_room_there_is_no_preview() -> None:
    assert make_preview(_LOG, tokens=0) is None


def test_few_tokens_are_kept_to() -> None:
    for kind, content in _CONTENTS.items():
        for tokens in (1, 5, 40):
            preview = make_preview(content, tokens=tokens)
            assert preview is None or estimate_text(preview.text) <= tokens, kind


def test_a_negative_number_of_tokens_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="tokens must be 0 or more, got -1"):
        make_preview("x", tokens=-1)


def test_another_way_of_counting_is_kept_to() -> None:
    for content in _CONTENTS.values():
        preview = make_preview(content, tokens=900, count_text=len)
        assert preview is None or len(preview.text) <= 900


def test_a_preview_can_be_sent_whatever_the_content_holds() -> None:
    preview = make_preview("a\x00b\x1b[31mc\ud800d and more words\n" * 500)
    assert preview is not None
    preview.text.encode("utf-8")
    assert not set(preview.text) & {"\x00", "\x1b", "\r"}


def test_a_previewer_that_fails_is_replaced_by_a_plainer_one(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def preview_badly(text: str, room: object) -> str:
        raise RecursionError("too deep")

    monkeypatch.setitem(making._PREVIEWERS, "log", preview_badly)
    with caplog.at_level(logging.WARNING):
        preview = make_preview(_LOG)
    assert isinstance(preview, Preview)
    assert preview.kind == "text"
    assert "preview_badly failed" in caplog.text


def test_a_preview_that_grew_too_long_is_cut_at_a_line_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(making._PREVIEWERS, "log", lambda text, room: "one line\n" * 500)
    preview = make_preview(_LOG, tokens=100)
    assert preview is not None
    assert estimate_text(preview.text) <= 100
    *lines, last = preview.text.split("\n")
    assert set(lines) == {"one line"}
    assert "left out" in last


_WORDS = st.sampled_from(
    ["ERROR", "def f():", "{", "}", '"a": 1,', "---", "@@ -1,2 +1,2 @@", "a,b,c", "# T", "\t", "0x1f", "…", "é"]
)
_TEXTS = st.one_of(
    st.text(max_size=400),
    st.lists(st.one_of(_WORDS, st.text(max_size=20)), max_size=120).map("\n".join),
    st.lists(_WORDS, max_size=200).map(" ".join),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_TEXTS, st.sampled_from(_TYPES), st.integers(0, 400), st.integers(1, 30))
def test_any_text_of_any_type_is_previewed_or_left(text: str, content_type: str, tokens: int, times: int) -> None:
    content = text * times
    preview = make_preview(content, content_type, tokens=tokens)
    if preview is not None:
        assert estimate_text(preview.text) <= tokens
        assert estimate_text(preview.text) < estimate_text(content)
        preview.text.encode("utf-8")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(_CONTENTS)), st.sampled_from(_TYPES), st.data())
def test_damaged_contents_are_previewed_without_any_failure(kind: str, content_type: str, data: st.DataObject) -> None:
    content = _CONTENTS[kind]
    start, end = sorted((data.draw(st.integers(0, len(content))), data.draw(st.integers(0, len(content)))))
    inserted = data.draw(st.text(max_size=30))
    damaged = content[:start] + inserted + content[end:]
    failures: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = failures.append  # type: ignore[method-assign]
    logging.getLogger(making.__name__).addHandler(handler)
    try:
        preview = make_preview(damaged, content_type, tokens=200)
    finally:
        logging.getLogger(making.__name__).removeHandler(handler)
    assert preview is None or estimate_text(preview.text) <= 200
    assert not failures, failures[0].getMessage()


_LARGE = {
    "one line of letters": lambda: "a" * 10_000_000,
    "one line of words": lambda: "lorem ipsum " * 850_000,
    "one line of blanks": lambda: " " * 10_000_000,
    "one line of brackets": lambda: "[" * 3_000_000,
    "a million short lines": lambda: "\n".join(map(str, range(1_000_000))),
    "control characters": lambda: "\x00\x1b\x07\n" * 500_000,
    "colons": lambda: (":" * 3_000 + "\n") * 500,
    "slashes": lambda: ("/a" * 1_500 + "\n") * 500,
    "dots": lambda: (" ... " * 300 + "\n") * 1_000,
    "words of tests": lambda: 'FAILED a::b - x\nE   y\n  File "z", line 1\n' * 8_000 + "=== 1 failed in 1s ===\n",
    "logs": lambda: _LOG * 25,
    "blank lines": lambda: "def f():\n    return 1\n" * 90 + "\n" * 5_000_000,
    "headings": lambda: "<!doctype html>" + "<h1>" * 1_000_000,
    "rows of two cells": lambda: "a,b\n" * 1_000_000,
    "empty rows": lambda: "{}\n" * 1_000_000,
    "JSON that was cut": lambda: "[" + '{"a": 1}, ' * 300_000,
    "listings": lambda: "".join(f"d{at}/f{at}.py\n" for at in range(15_000)),
}


@pytest.mark.parametrize("name", _LARGE)
def test_large_contents_take_no_more_than_linear_time(name: str) -> None:
    content = _LARGE[name]()
    started = time.monotonic()
    preview = make_preview(content)
    assert time.monotonic() - started < _LIMIT_IN_SECONDS
    assert preview is None or estimate_text(preview.text) <= 1500
