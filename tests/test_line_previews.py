"""Previews of what is written line by line: they show what is in it, where, and how much is left out."""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.previews import make_preview
from holdfast.previews.blobs import preview_blob, preview_long_lines
from holdfast.previews.diffs import preview_diff
from holdfast.previews.failures import preview_failures
from holdfast.previews.listings import preview_listing
from holdfast.previews.logs import preview_log
from holdfast.previews.markdown import preview_markdown
from holdfast.previews.plain import preview_plain
from holdfast.previews.room import Room
from holdfast.tokens import estimate_text

_PREVIEWERS = [
    preview_blob,
    preview_long_lines,
    preview_diff,
    preview_failures,
    preview_listing,
    preview_log,
    preview_markdown,
    preview_plain,
]


def _shown(content: str, kind: str, tokens: int = 800) -> str:
    preview = make_preview(content, tokens=tokens)
    assert preview is not None
    assert preview.kind == kind
    return preview.text


def _assert_quotes_stand_where_they_say(shown: str, content: str) -> None:
    lines = content.split("\n")
    quotes = [(int(number), quote) for number, quote in re.findall(r"^(\d+): (.+)$", shown, re.MULTILINE)]
    assert quotes
    for number, quote in quotes:
        assert set(re.findall(r"\w{4,}", quote)[:1]) <= set(re.findall(r"\w{4,}", lines[number - 1]))


# Logs


def _log(extra: dict[int, str]) -> str:
    usual = "2024-03-01 10:00:00 host app[{0}]: request {0} from 10.0.0.{1} took {2} ms"
    return "\n".join(extra.get(at) or usual.format(at + 1_000, at % 250, at * 3) for at in range(2_000))


def test_a_log_tells_its_span_and_its_length() -> None:
    shown = _shown(
        _log({0: "2024-03-01 09:59:58 host app[1]: up", 1999: "2024-03-01 11:30:00 host app[1]: down"}), "log"
    )
    assert "2,000 lines, 2024-03-01 09:59:58 to 2024-03-01 11:30:00" in shown


def test_an_error_deep_in_a_log_is_shown_with_its_line() -> None:
    shown = _shown(_log({1234: "2024-03-01 10:00:00 host app[9]: ERROR disk /dev/sdb1 is full"}), "log")
    assert "1235: app[9]: ERROR disk /dev/sdb1 is full" in shown
    assert "errors and warnings, 1 line, 1 kind" in shown


def test_errors_that_differ_in_numbers_are_one_kind_with_a_count_and_what_differs() -> None:
    errors = {
        at: f"2024-03-01 10:00:00 host app[{at}]: ERROR timeout after {at * 7} s" for at in range(100, 1_900, 100)
    }
    shown = _shown(_log(errors), "log")
    assert "101: app[100]: ERROR timeout after 700 s (×18, to 1801)" in shown
    assert "200 1400" in shown


def test_a_log_without_errors_shows_its_rare_lines() -> None:
    shown = _shown(_log({777: "2024-03-01 10:00:00 host cron[5]: rotated archive nightly-backup"}), "log")
    assert "778: cron[5]: rotated archive nightly-backup" in shown
    assert "×1,999" in shown


def test_what_all_lines_of_a_log_share_is_said_once() -> None:
    shown = _shown(_log({}), "log")
    assert "each has 'host'" in shown
    assert shown.count("host") <= 7


def test_an_error_is_found_in_a_log_of_any_length() -> None:
    lines = [f"2024-03-01 10:00:00 host app: request {at} took {at % 97} ms" for at in range(60_000)]
    lines[45_678] = "2024-03-01 10:00:00 host app: Fatal: the reactor is on fire"
    shown = _shown("\n".join(lines), "log")
    assert "45679: host app: Fatal: the reactor is on fire" in shown
    assert "×59,999" in shown


def test_lines_of_too_many_kinds_are_not_all_looked_at_and_that_is_said() -> None:
    def word(at: int) -> str:
        return "".join(chr(ord("g") + digit) for digit in (at // 324, at // 18 % 18, at % 18))

    lines = [
        f"2024-03-01 10:00:00 {word(at)} met {word(at * 7 % 5_000)} at {word(at * 3 % 5_000)}" for at in range(5_000)
    ]
    shown = _shown("\n".join(lines), "log")
    assert re.search(r"other lines, [\d,]+ kinds?, [\d,]+ lines not looked at:", shown)


def test_an_access_log_is_counted_by_status_and_path() -> None:
    line = '10.0.0.{0} - - [01/Mar/2024:10:00:00 +0000] "GET {1} HTTP/1.1" {2} {3} "-" "Browser/1.0"\n'
    usual = [line.format(at % 9, "/index.html", 200, 512) for at in range(900)]
    usual[500] = line.format(3, "/admin/secret.php", 404, 9)
    usual[700] = line.format(4, "/reports/q3.pdf", 200, 12_345)
    shown = _shown("".join(usual), "log")
    assert "statuses: 200 ×899, 404 ×1" in shown
    assert "/index.html ×898" in shown
    assert "501: /admin/secret.php 404 9" in shown
    assert "701: /reports/q3.pdf 12345" in shown


# Failures


def _pytest_output(passed: int = 800) -> str:
    return (
        "=================== test session starts ===================\n"
        + "".join(f"tests/test_m{at % 30}.py::test_case_{at} PASSED\n" for at in range(passed))
        + "======== FAILURES ========\n________ test_divides ________\n\n    def test_divides():\n"
        + ">       divide(1, 0)\n\ntests/test_math.py:14: in test_divides\n"
        + "E   ZeroDivisionError: division by zero\n\nsrc/math.py:5: ZeroDivisionError\n"
        + "FAILED tests/test_math.py::test_divides - ZeroDivisionError: division by zero\n"
        + f"======== 1 failed, {passed} passed in 4.56s ========\n"
    )


def test_test_output_shows_what_failed_why_where_and_the_summary() -> None:
    shown = _shown(_pytest_output(), "test output")
    assert "1 failed, 800 passed in 4.56s" in shown
    assert "FAILED tests/test_math.py::test_divides" in shown
    assert "E   ZeroDivisionError: division by zero" in shown
    assert "src/math.py:5: ZeroDivisionError" in shown
    _assert_quotes_stand_where_they_say(shown, _pytest_output())


def test_a_traceback_shows_its_last_frame_and_the_exception() -> None:
    frames = "".join(f'  File "/app/layer{at}.py", line {at}, in call{at}\n    step{at}()\n' for at in range(300))
    shown = _shown(f"Traceback (most recent call last):\n{frames}KeyError: 'the_missing_key'\n", "stack trace", 300)
    assert "602: KeyError: 'the_missing_key'" in shown
    assert "/app/layer299.py" in shown


def test_a_java_trace_shows_its_causes() -> None:
    frames = "".join(f"\tat com.acme.Layer{at}.run(Layer{at}.java:{at})\n" for at in range(400))
    trace = f"java.lang.IllegalStateException: outer\n{frames}Caused by: java.io.IOException: disk gone\n{frames}"
    shown = _shown(trace, "stack trace", 400)
    assert "402: Caused by: java.io.IOException: disk gone" in shown
    assert "IllegalStateException: outer" in shown


_PASSED = {
    "go": ("--- PASS: TestA{0} (0.00s)\n", "--- FAIL: TestBroken (0.01s)\n    a_test.go:9: no\nFAIL\tacme/pkg\t0.1s\n"),
    "cargo": ("test a::b{0} ... ok\n", "test a::broken ... FAILED\ntest result: FAILED. 400 passed; 1 failed\n"),
    "unittest": ("test_a{0} (m.T) ... ok\n", "FAIL: test_broken (m.T)\nRan 401 tests in 1.0s\n\nFAILED (failures=1)\n"),
    "jest": (
        "  √ works {0} (2 ms)\n",
        "  ✕ is broken (3 ms)\n  ● suite › is broken\nTests:       1 failed, 400 passed, 401 total\n",
    ),
}


@pytest.mark.parametrize("runner", _PASSED)
def test_each_runners_failures_are_found_among_hundreds_that_passed(runner: str) -> None:
    passing, failing = _PASSED[runner]
    shown = _shown("".join(passing.format(at) for at in range(400)) + failing, "test output", 400)
    assert re.search("broken", shown, re.IGNORECASE)
    assert re.search(r"failed|failures=1|FAIL\tacme", shown)


# Diffs


def test_a_diff_shows_its_files_with_counts_and_totals() -> None:
    small = "".join(
        f"diff --git a/m{at}.py b/m{at}.py\n--- a/m{at}.py\n+++ b/m{at}.py\n"
        f"@@ -1,2 +1,2 @@ def f{at}():\n same\n-old\n+new\n"
        for at in range(60)
    )
    large = "diff --git a/big.py b/big.py\nnew file mode 100644\n--- /dev/null\n+++ b/big.py\n@@ -0,0 +1,90 @@\n"
    shown = _shown(small + large + "+added line\n" * 90, "diff")
    assert "61 files, +150 -60" in shown
    assert "421: big.py +90 -0 (new file)" in shown
    assert "def f0():" in shown


def test_lines_of_a_hunk_that_look_like_headers_are_counted_as_changes() -> None:
    content = "--- a/x.sql\n+++ b/x.sql\n@@ -1,2 +1,2 @@\n--- a comment\n-more\n+++ new\n+other\n" + "# tail\n" * 900
    shown = preview_diff(content, Room(500))
    assert shown is not None
    assert "1 file, +2 -2" in shown


# Markdown


def test_markdown_shows_its_headings_with_their_lines() -> None:
    content = "# Title\n\nLead.\n\n" + "".join(f"## Part {at}\n\n{'Words and words. ' * 30}\n\n" for at in range(40))
    shown = _shown(content, "Markdown")
    assert "41 headings" in shown
    assert "1: # Title" in shown
    assert "161: ## Part 39" in shown


def test_comments_in_fenced_code_are_no_headings() -> None:
    content = "# Title\n\n```sh\n# not a heading\n```\n\nUnderlined\n==========\n\n" + "Some words here.\n\n" * 400
    shown = _shown(content, "Markdown", 500)
    assert "2 headings" in shown
    assert "7: # Underlined" in shown
    assert "# # not a heading" not in shown


# Listings


def test_a_file_listing_is_counted_by_directory_and_suffix() -> None:
    content = "".join(f"src/part{at % 5}/module{at}.py\n" for at in range(600)) + "docs/guide.md\n"
    shown = _shown(content, "listing")
    assert "601 entries" in shown
    assert "src/part0/ ×120" in shown
    assert ".py ×600, .md ×1" in shown
    assert "601: docs/guide.md" in shown


def test_a_listing_with_sizes_names_the_largest_files() -> None:
    content = "".join(f"-rw-r--r-- 1 me staff {at} Jan  2 10:11 file{at}.txt\n" for at in range(500))
    content += "-rw-r--r-- 1 me staff 98765432 Jan  2 10:11 huge.bin\n"
    assert "largest: 501: huge.bin 98765432" in _shown(content, "listing")


def test_grep_output_is_told_by_file() -> None:
    content = "".join(f"src/m{at // 100}.py:{at}:def function_{at}(self):\n" for at in range(500))
    shown = _shown(content, "grep output")
    assert "500 lines of 5 files" in shown
    assert "1: src/m0.py:0: def function_0(self): (×100, to 100)" in shown
    assert re.search(r"\d+ function_\d+;", shown)


def test_a_git_log_is_counted_by_sort_and_month() -> None:
    content = "".join(
        f"{at * 7919:09x} 2024-0{at % 3 + 1}-01 {'feat' if at % 3 else 'fix'}: change number {at}\n"
        for at in range(600)
    )
    shown = _shown(content, "git log")
    assert "600 commits" in shown
    assert "sorts: feat ×400, fix ×200" in shown
    assert "2024-01 ×200" in shown


def test_a_long_git_log_shows_authors_and_subjects() -> None:
    content = "".join(
        f"commit {at * 7919:040x}\nAuthor: Ann <ann@example.org>\nDate:   Fri Mar 1 10:00:00 2024 +0000\n\n"
        f"    Subject{at} about things\n\n    A body that says more.\n\n"
        for at in range(200)
    )
    shown = _shown(content, "git log")
    assert "200 commits" in shown
    assert "authors: Ann <ann@example.org> ×200" in shown
    assert "Subject0" in shown


def test_a_blame_tells_authors_and_commits() -> None:
    content = "".join(
        f"{at // 10 * 104729:010x} ({'Ann Author' if at % 3 else 'Bo Builder'} 2024-02-01 {at + 1}) value_{at} = {at}\n"
        for at in range(900)
    )
    shown = _shown(content, "git blame")
    assert "authors: Ann Author ×600, Bo Builder ×300" in shown
    assert "90 commits" in shown


# Plain text and blobs


def test_plain_text_shows_head_and_tail_and_counts_what_is_between() -> None:
    content = "".join(f"Sentence {at} is about the {'quokka' if at == 1500 else 'usual'}.\n" for at in range(3_000))
    shown = _shown(content, "text", 400)
    assert shown.startswith("3,000 lines")
    assert "1: Sentence 0 is" in shown
    assert "3000: Sentence 2999 is" in shown
    assert re.search(r"… [\d,]+ lines left out …", shown)
    _assert_quotes_stand_where_they_say(shown, content)


def test_words_that_occur_once_are_listed_by_line() -> None:
    words = ["quokka", "zeppelin", "harpsichord", "marmalade", "sycamore", "obsidian", "falconry", "tapestry"]
    extra = {
        at * 97 + 50: f"{word}{other} seen\n" for at, (word, other) in enumerate((w, o) for w in words for o in "xyz")
    }
    content = "".join(extra.get(at, f"the usual line again and again number {at}\n") for at in range(3_000))
    shown = _shown(content, "text", 500)
    assert "words that occur once" in shown
    assert sum(word + other in shown for word in words for other in "xyz") > 12


def test_words_of_a_part_are_said_to_be_of_a_part() -> None:
    content = "".join(f"line {at} tells of thing{at} and the usual rest of it\n" for at in range(30_000))
    assert re.search(r"words that occur once in the \d+% that was looked at", _shown(content, "text"))


def test_base64_is_named_with_its_size_and_what_it_holds() -> None:
    content = base64.b64encode(b"\x89PNG\r\n" + random.Random(2).randbytes(60_000)).decode()
    shown = _shown(content, "base64", 200)
    assert "PNG image" in shown
    assert "about 60,0" in shown
    assert len(shown) < 400


def test_a_data_url_names_its_type() -> None:
    content = (
        "data:application/pdf;base64," + base64.b64encode(b"%PDF-1.7" + random.Random(3).randbytes(9_000)).decode()
    )
    shown = _shown(content, "data URL", 200)
    assert "application/pdf" in shown
    assert "PDF document" in shown


def test_hexadecimal_digits_are_named() -> None:
    assert "gzip" in _shown((b"\x1f\x8b" + random.Random(4).randbytes(9_000)).hex(), "hex", 200)


def test_one_giant_line_is_shown_in_windows_of_characters() -> None:
    content = "!function(){" + "".join(f"var name{at}=call({at});" for at in range(20_000))
    shown = _shown(content, "long lines")
    assert f"1 ({len(content):,})" in shown
    windows = re.findall(r"characters ([\d,]+)–([\d,]+): (.*)", shown)
    assert len(windows) > 5
    for start, end, piece in windows:
        assert piece.strip() == content[int(start.replace(",", "")) : int(end.replace(",", ""))].strip()


# All of them


@pytest.mark.parametrize("preview", _PREVIEWERS, ids=lambda preview: preview.__name__)
@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(st.characters(codec=None), max_size=40), max_size=60).map("\n".join), st.integers(0, 300))
def test_any_text_can_be_given_to_any_previewer(
    preview: Callable[[str, Room], str | None], text: str, tokens: int
) -> None:
    written = preview(text, Room(tokens))
    assert written is None or isinstance(written, str)


@pytest.mark.parametrize("preview", _PREVIEWERS, ids=lambda preview: preview.__name__)
def test_a_previewer_keeps_about_to_its_room(preview: Callable[[str, Room], str | None]) -> None:
    contents = [_log({}), _pytest_output(), "x" * 9_000, "# A\n\nb c d\n" * 900, "a/b/c.py\n" * 900, "a.py:1:x\n" * 900]
    for content in contents:
        for tokens in (100, 400, 1500):
            written = preview(content, Room(tokens))
            assert written is None or estimate_text(written) <= tokens * 1.2 + 20
