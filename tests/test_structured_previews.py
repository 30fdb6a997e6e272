"""Previews of structured contents: they fit, they never fail, and what they claim is true."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.previews.code import preview_code
from holdfast.previews.html_text import preview_html
from holdfast.previews.json_values import preview_json
from holdfast.previews.notebooks import preview_notebook
from holdfast.previews.room import Room
from holdfast.previews.rows import preview_json_lines, preview_table
from holdfast.previews.yaml_text import preview_yaml
from holdfast.tokens import estimate_text

PREVIEWERS = [
    preview_code,
    preview_html,
    preview_json,
    preview_json_lines,
    preview_notebook,
    preview_table,
    preview_yaml,
]
GENEROUS_SECONDS = 60


def shown(write, text, tokens=1500):
    preview = write(text, Room(tokens))
    assert preview is not None
    assert estimate_text(preview) <= tokens
    return preview


def numbered_lines(preview):
    """The lines of a preview that begin with a line number, with what they quote."""
    found = (re.match(r"(\d+): +(.*)", line) for line in preview.split("\n"))
    return [(int(match[1]), match[2]) for match in found if match]


# JSON


def test_a_list_of_objects_is_told_by_its_keys_and_how_often_each_occurs():
    items = [{"id": n, "state": "open" if n % 3 else "closed", **({"note": "x"} if n < 5 else {})} for n in range(300)]
    preview = shown(preview_json, json.dumps({"items": items, "total": 300}))
    assert "items[]: list of 300; 300 objects" in preview
    assert "note (5/300)" in preview
    assert "open ×200 | closed ×100" in preview
    assert "id: 0..299" in preview


def test_the_first_and_the_last_item_are_shown_with_their_paths_as_valid_json():
    preview = shown(preview_json, json.dumps([{"id": n} for n in range(300)]))
    first = next(line for line in preview.split("\n") if line.startswith("$[0]: "))
    last = next(line for line in preview.split("\n") if line.startswith("$[299]: "))
    assert json.loads(first.partition(": ")[2]) == {"id": 0}
    assert json.loads(last.partition(": ")[2]) == {"id": 299}
    assert "… 298 more items …" in preview


def test_an_item_that_is_cut_says_so():
    preview = shown(preview_json, json.dumps([{"text": "word " * 500}, 1]))
    first = next(line for line in preview.split("\n") if line.startswith("$[0]: "))
    assert first.endswith("… [cut]")


def test_of_very_many_values_some_are_looked_at_and_that_is_said():
    preview = shown(preview_json, json.dumps([{"id": n} for n in range(9_000)]))
    assert "$[]: list of 9,000; 9,000 objects, 3,000 of 9,000 looked at" in preview


def test_an_object_used_as_a_map_shows_keys_of_the_whole_range_and_one_shape():
    users = {f"user_{n:04}": {"name": f"Name {n}", "age": n} for n in range(500)}
    preview = shown(preview_json, json.dumps(users))
    assert preview.split("\n")[1].startswith("$.*: map of 500 keys: ")
    numbers = [int(number) for number in re.findall(r"user_(\d{4}) \|", preview)]
    assert min(numbers) < 100
    assert max(numbers) > 400
    assert "age: 0..499" in preview


def test_values_that_repeat_the_keys_of_a_map_are_not_shown_again():
    preview = shown(preview_json, json.dumps({f"id{n}": {"id": f"id{n}", "size": n} for n in range(100)}))
    assert "id: same as its key" in preview


def test_texts_are_shown_with_a_path_that_leads_to_them():
    value = {"a": {"b-c": [{"d e": "a sentence of several unusual words"}]}, "n": list(range(1000))}
    preview = shown(preview_json, json.dumps(value))
    assert '$.a.b-c[0]["d e"]: a sentence of several unusual words' in preview


def test_json_that_was_cut_says_so_and_shows_what_could_be_read():
    whole = json.dumps({"items": [{"id": n, "name": f"name {n}"} for n in range(400)]})
    cut = whole[: len(whole) * 3 // 4]
    preview = shown(preview_json, cut)
    assert "not valid as a whole" in preview.split("\n")[0]
    read = re.search(r"items\[\]: list of (\d+)", preview)
    assert read is not None
    assert 250 < int(read[1]) < 350


@pytest.mark.parametrize("text", ["", "   ", "hello", '{"a', "[", "{}x" + "y" * 100, '"' * 50, "[1, 2" + "\\" * 9])
def test_what_is_no_json_has_no_preview_as_json(text):
    assert preview_json(text, Room(500)) is None


# JSON lines


def test_json_lines_tell_their_rows_and_count_what_is_no_json():
    lines = [json.dumps({"at": n, "kind": "a" if n % 2 else "b"}) for n in range(200)]
    lines[100] = "garbage"
    preview = shown(preview_json_lines, "\n".join(lines))
    assert preview.startswith("JSON lines, 199 rows, 1 line not JSON")
    assert "at: 0..199" in preview
    assert "b ×99" in preview
    assert any(number == 200 for number, _ in numbered_lines(preview))


def test_of_very_many_rows_some_are_looked_at_and_that_is_said():
    preview = shown(preview_json_lines, "\n".join(json.dumps({"at": n}) for n in range(9_000)))
    assert re.match(r"JSON lines, 9,000 lines, of which 2,00\d were looked at", preview)
    assert any(number == 9_000 for number, _ in numbered_lines(preview))


def test_values_that_occur_once_are_listed_by_row_however_long_the_rows_are():
    rows = [{"id": f"order-{n * 7919}", "same": "usual words " * 60, "total": n * 1_000_003} for n in range(200)]
    preview = shown(preview_json_lines, "\n".join(map(json.dumps, rows)))
    listed = preview.partition("words that occur once")[2]
    for name in ("id", "total"):
        found = [n for n, row in enumerate(rows) if re.search(rf"\b{row[name]}\b", listed)]
        assert len(found) > 20
        assert found[0] < 40 < 160 < found[-1]


def test_lines_of_which_most_are_no_json_have_no_preview_as_json_lines():
    assert preview_json_lines('{"a": 1}\nno\nno\nno\n', Room(500)) is None


# Tables


@pytest.mark.parametrize("separator", [",", "\t", ";", "|"])
def test_a_table_tells_its_columns_with_ranges_and_values(separator):
    rows = [separator.join(["name", "size", "state"])]
    rows += [separator.join([f"thing {n}", str(n), "on" if n % 4 else "off"]) for n in range(400)]
    preview = shown(preview_table, "\n".join(rows))
    assert preview.startswith("table, 400 rows, 3 columns")
    assert "size: 0..399" in preview
    assert "on ×300 | off ×100" in preview


def test_rows_are_quoted_with_the_line_on_which_they_begin():
    rows = ["id,text", *(f'{n},"two\nlines {n}"' for n in range(100))]
    preview = shown(preview_table, "\n".join(rows))
    assert preview.startswith("table, 100 rows, 2 columns")
    assert "200: 99,two lines 99" in preview.split("\n")


def test_a_quote_that_is_never_closed_does_not_swallow_the_table():
    rows = ["id,text", *(f"{n},word{n}" for n in range(500))]
    rows[3] = '2,"never closed'
    assert shown(preview_table, "\n".join(rows)).startswith("table, 500 rows")


def test_a_cell_beyond_the_limit_of_the_csv_module_is_read():
    rows = ["id,text", *(f'{n},"{"x" * 200_000}"' for n in range(3))]
    assert shown(preview_table, "\n".join(rows)).startswith("table, 3 rows, 2 columns")


def test_of_a_very_long_table_the_rows_are_counted_and_some_are_looked_at():
    preview = shown(preview_table, "\n".join(["id,name", *(f"{n},name {n}" for n in range(9_000))]))
    assert re.match(r"table, 9,000 rows \(2,\d\d\d of them looked at\), 2 columns", preview)


def test_numbers_with_leading_zeros_stay_as_they_are_written():
    rows = ["zip,n", *(f"{n:05},{n}" for n in range(100))]
    assert "zip: string, 100 distinct: 00" in shown(preview_table, "\n".join(rows))


def test_a_table_without_a_header_says_so():
    preview = shown(preview_table, "\n".join(f"{n},{n * 2}" for n in range(50)))
    assert "no header" in preview.split("\n")[0]
    assert preview.startswith("table, 50 rows, 2 columns")


# YAML


def test_yaml_is_outlined_with_line_numbers_and_counts():
    text = "version: 1\npeople:\n" + "".join(f"  p{n}:\n    name: Name {n}\n    age: {n}\n" for n in range(200))
    preview = shown(preview_yaml, text)
    assert "2: people: (200)" in preview.split("\n")
    assert "name ×200" in preview
    for number, quoted in numbered_lines(preview):
        bare = re.sub(r" \([\d,]+\)$", "", quoted)
        if ":" in bare:
            assert text.split("\n")[number - 1].strip().startswith(bare.strip("…")[:20])


def test_a_block_of_text_in_yaml_is_not_taken_for_keys():
    text = "a:\n  script: |\n    not: a key\n    nor: this\n  b: 1\n" + "".join(f"k{n}: {n}\n" for n in range(50))
    assert "1: a: (2)" in shown(preview_yaml, text).split("\n")


def test_prose_has_no_preview_as_yaml():
    assert preview_yaml("Just some text.\nAnd more of it.\n" * 20, Room(500)) is None


# Notebooks


def notebook(cells):
    return json.dumps({"cells": cells, "nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}}, indent=1)


def test_a_notebook_shows_headings_code_outputs_and_errors():
    error = {"output_type": "error", "ename": "ValueError", "evalue": "bad thing", "traceback": []}
    picture = {"output_type": "display_data", "data": {"image/png": "A" * 5000, "text/plain": "<Figure>"}}
    cells = [
        {"cell_type": "markdown", "source": ["intro\n", "## The heading"]},
        {"cell_type": "code", "source": "import os\nprint(1)", "outputs": [{"output_type": "stream", "text": "1\n2"}]},
        {"cell_type": "code", "source": ["boom()"], "outputs": [error, picture]},
    ]
    preview = shown(preview_notebook, notebook(cells))
    assert preview.startswith("notebook (python), 3 cells: 2 code, 1 markdown")
    assert "error in [2]: ValueError: bad thing" in preview
    assert "[0] ## The heading" in preview
    assert "[1] import os (+1 lines) → 2 lines" in preview
    assert "image/png of 5,000 characters" in preview
    assert "AAAA" not in preview


def test_json_without_cells_has_no_preview_as_a_notebook():
    assert preview_notebook('{"cells": 3}', Room(500)) is None


# HTML


def test_html_shows_title_headings_and_text_without_scripts():
    page = "<html><head><title>The &amp; title</title><script>var hidden = '<p>no</p>';</script></head>\n<body>\n"
    page += "<h1>Top</h1>\n<p>Some <b>bold</b>\ntext.</p>\n<!-- a remark -->\n"
    page += "<h2 class='x'>Next</h2><a href='#'>go</a></body>"
    preview = shown(preview_html, page)
    assert "title: The & title" in preview
    assert "3: # Top" in preview.split("\n")
    assert "7: ## Next" in preview.split("\n")
    assert "4: Some bold text." in preview.split("\n")
    assert "1 <a>" in preview
    assert "hidden" not in preview
    assert "remark" not in preview


def test_markup_that_is_never_closed_is_read_as_far_as_it_goes():
    for page in ("<p>one<!-- never", "<p>one<script>never", '<p>one<a href="never', "<p>one<"):
        assert "one" in shown(preview_html, page)


def test_a_sign_inside_a_quoted_value_does_not_end_the_tag():
    assert "b>" not in shown(preview_html, '<p><img alt="a>b">text here</p>')


def test_a_very_large_page_is_read_in_pieces_and_its_headings_are_from_all_over_it():
    parts = "".join(
        f"<h2>Part {n}</h2>\n<p>some <b>text</b> here</p>\n<script>hidden{n}()</script>\n" for n in range(3_000)
    )
    preview = shown(preview_html, f"<html>{parts}</html>")
    assert re.search(r"text from [\d.]+% of the page", preview)
    numbers = [number for number, quoted in numbered_lines(preview) if quoted.startswith("## Part")]
    assert all(f"{number}: ## Part {(number - 1) // 3}" in preview.split("\n") for number in numbers)
    assert numbers[0] < 1_000 < 8_000 < numbers[-1]
    assert "hidden" not in preview


# Source code


def test_python_is_outlined_with_imports_classes_methods_and_constants():
    text = '"""What it is for."""\nimport os\nfrom a.b import c\n\nLIMIT = 3\n\n\n'
    text += "class Thing:\n    def run(self, x):\n        pass\n"
    text += "".join(f"\n\ndef function_{n}(a, b):\n    return {n}\n" for n in range(10))
    lines = shown(preview_code, text).split("\n")
    assert lines[0] == "Python source, 50 lines, 13 declarations"
    assert "imports: os, a.b" in lines
    assert "1: What it is for." in [line.removesuffix('"""') for line in lines]
    assert "8: class Thing" in lines
    assert "9:   def run(self, x)" in lines
    assert "5: LIMIT = 3" in lines


def test_python_that_does_not_parse_is_outlined_all_the_same():
    text = "".join(f"def function_{n}(a, b):\n    return {n}\n\n" for n in range(30)) + "def broken(:\n"
    preview = shown(preview_code, text)
    assert "88: def function_29(a, b)" in preview.split("\n")


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("pub async fn start(&self) {", "start"),
        ("func (s *Server) Serve(l net.Listener) error {", "Serve"),
        ("export const handler = async (event) => {", "handler"),
        ("public static void main(String[] args) {", "main"),
        ("static int parse_line(const char *line) {", "parse_line"),
        ("CREATE TABLE public.users (", "users"),
    ],
)
def test_declarations_of_other_languages_are_found_with_their_lines(line, name):
    around = {
        "pub": "let mut x = 1;",
        "func": "if err != nil {",
        "export": "const x = 1;",
        "public": "import java.util.List;",
    }
    filler = {**around, "static": "#include <stdio.h>", "CREATE": "ALTER TABLE x;"}[line.split()[0]]
    preview = shown(preview_code, "\n".join([filler] * 20 + [line] + [filler] * 20))
    assert any(number == 21 and name in quoted for number, quoted in numbered_lines(preview))


def test_a_table_in_sql_is_shown_with_its_columns():
    text = (
        "CREATE TABLE users (\n  id integer NOT NULL,\n  full_name text,\n  PRIMARY KEY (id)\n);\n" + "SELECT 1;\n" * 30
    )
    assert "TABLE users (id, full_name)" in shown(preview_code, text)


def test_minified_source_has_no_preview_as_code():
    assert preview_code("var a=1;" * 2000, Room(500)) is None


# All of them

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner), max_leaves=40
)
HOSTILE = st.text(alphabet="{}[]<>\"',:;|\n\t\r -#&\\/=!ab01é漢\ud800\0", max_size=400)


def checked(write, text, tokens):
    preview = write(text, Room(tokens))
    if preview is not None:
        assert preview
        assert estimate_text(preview) <= tokens
    return preview


@settings(max_examples=60, deadline=None)
@given(VALUES, st.integers(0, 400))
def test_any_value_fits_and_lists_are_as_long_as_is_said(value, tokens):
    preview = checked(preview_json, json.dumps(value), tokens)
    match = re.search(r"^\$\[\]: list of ([\d,]+)", preview or "", re.MULTILINE)
    if match:
        assert int(match[1].replace(",", "")) == len(value)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.text(max_size=12), min_size=2, max_size=2), min_size=3, max_size=30), st.integers(0, 400))
def test_any_table_fits_and_its_numbers_are_lines_of_the_text(rows, tokens):
    text = "\n".join(",".join(row) for row in rows)
    preview = checked(preview_table, text, tokens)
    count = len(text.split("\n"))
    for number, _ in numbered_lines(preview.split("from between")[0] if preview else ""):
        assert 1 <= number <= count or str(number) in text


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from("abcd"), SCALARS, min_size=1), min_size=1, max_size=20))
def test_rows_of_json_lines_are_counted_and_so_are_their_keys(rows):
    preview = checked(preview_json_lines, "\n".join(map(json.dumps, rows)), 2000)
    assert preview is not None
    assert re.match(r"JSON lines, (\d+) row", preview)[1] == str(len(rows))
    for key, present, parents in re.findall(r"^ ([abcd]) \((\d+)/(\d+)\):", preview, re.MULTILINE):
        assert (int(present), int(parents)) == (sum(key in row for row in rows), len(rows))


@settings(max_examples=60, deadline=None)
@given(HOSTILE, st.integers(0, 300))
def test_no_text_makes_a_previewer_fail_or_leave_its_room(text, tokens):
    for write in PREVIEWERS:
        checked(write, text, tokens)


WHOLE = {
    preview_json: json.dumps([{"id": n, "tags": ["a", "b"], "text": "some words\nhere"} for n in range(20)]),
    preview_json_lines: "\n".join(json.dumps({"id": n, "t": "x"}) for n in range(20)),
    preview_table: "a,b\n" + "\n".join(f'{n},"x, {n}"' for n in range(20)),
    preview_yaml: "a:\n" + "\n".join(f"  k{n}: [1, 2]" for n in range(20)),
    preview_notebook: notebook([{"cell_type": "code", "source": ["x"], "outputs": [{"text": "y"}]}] * 5),
    preview_html: "<html>" + "<p>some <i>text</i></p><h2>x</h2>\n" * 20,
    preview_code: "import os\n" + "def f(x):\n    return (x, [1, {2: 3}])\n" * 20,
}


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(PREVIEWERS), st.floats(0, 1), st.floats(0, 1), st.text(max_size=5))
def test_texts_that_are_cut_or_broken_make_no_previewer_fail(write, start, end, inserted):
    text = WHOLE[write]
    middle = int(len(text) * start)
    for broken in (text[: int(len(text) * end)], text[:middle] + inserted + text[middle:]):
        for other in PREVIEWERS:
            checked(other, broken, 300)


HARD = {
    "one long line": "a" * 1_000_000,
    "quotes": '"' * 1_000_000,
    "escaped quotes": '["' + '\\"' * 500_000,
    "open tags": "<a " * 300_000,
    "open comments": "<!--" * 250_000,
    "open quotes in tags": '<a href="' * 110_000,
    "deep lists": "[" * 500_000,
    "deep objects": '{"a":' * 200_000,
    "ten thousand levels": "[" * 10_000 + "]" * 10_000,
    "rows with a quote": '1,"2,3\n' * 100_000,
    "wide spaces": ("import" + " " * 290 + "x\n") * 3_000,
    "colons": (":" * 399 + "\n") * 2_000,
    "brackets": ("a(" + ")" * 290 + "\n") * 3_000,
    "blank lines": "\n" * 500_000,
    "operators": "x = 1" + "+1" * 100_000,
}


@pytest.mark.parametrize("name", HARD)
def test_hard_texts_take_no_more_than_their_length_asks_for(name):
    started = time.monotonic()
    for write in PREVIEWERS:
        checked(write, HARD[name], 300)
    assert time.monotonic() - started < GENEROUS_SECONDS
