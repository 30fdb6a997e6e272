"""Rows of CSV, TSV and JSON lines."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError
from holdfast.selection.tables import RowsPage, Table, select_rows

CITIES = """city,people,area km2,zip,founded
Alba,1200,10.5,01234,1200-05-01
Bern,130000,51.6,3000,1191-01-01
Cork,190000,187,,1185-07-07
"Dún, Laoghaire",26525,,A96,
"""
EVENTS = """{"kind": "start", "user": {"name": "ann", "roles": ["a", "b"]}, "ms": 5, "ok": true}

{"kind": "stop", "user": {"name": "bob"}, "ms": 50, "ok": null}
{"kind": "stop", "ms": 500, "note": "late", "user": null}
"""
PIECES = [
    "city", "people", "zip", "==", "=", "<", "contains", "and", "or", "not", "(", ")", "'", '"', "`", "\\", "1e999",
    "''", "x", "!", "&&", "\x00", " ", "\n", "9" * 5_000,
]  # fmt: skip


def table_of(text: str, content_type: str = "text/csv") -> Table:
    table = Table.read(text, content_type)
    assert table is not None
    return table


def rows(text: str, where: str | None = None, columns: list[str] | None = None) -> list[tuple[Any, ...]]:
    kind = "application/x-ndjson" if text.startswith("{") else "text/csv"
    return [row.values for row in select_rows(table_of(text, kind), columns, where, limit=100).rows]


def names(where: str) -> list[Any]:
    return [city for (city,) in rows(CITIES, where, ["city"])]


class TestReading:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("content_type", ["text/csv", "text/plain"])
    def test_any_of_four_delimiters_is_recognised(self, delimiter: str, content_type: str) -> None:
        text = "".join(f"name {i}{delimiter}{i}{delimiter}{i * 2}\n" for i in range(5))
        table = table_of(f"a{delimiter}b{delimiter}c\n{text}", content_type)
        assert (table.columns, table.delimiter, table.row_count, table.note) == (("a", "b", "c"), delimiter, 5, "")

    def test_without_a_header_columns_are_numbered(self) -> None:
        table = table_of("1,x\n2,y\n")
        assert (table.columns, table.row_count) == (("column_1", "column_2"), 2)
        assert select_rows(table, ["column_2"], "column_1 > 1", limit=9).rows[0].values == ("y",)

    def test_columns_without_a_name_and_with_the_same_name_can_be_told_apart(self) -> None:
        assert table_of(",a,,b\nx,1,2,3\n").columns == ("column_1", "a", "column_3", "b")

    def test_rows_of_several_lines_have_the_line_they_begin_in(self) -> None:
        table = table_of('a,b\r\n1,"x\r\ny\n"\r\n\r\n2,z\r\n')
        page = select_rows(table, limit=9)
        assert [(row.line, row.values) for row in page.rows] == [(2, ("1", "x\r\ny\n")), (6, ("2", "z"))]
        assert table.note == ""

    def test_a_quote_that_is_never_closed_swallows_nothing(self) -> None:
        lines = [f"{i},word,{i}" for i in range(500)]
        lines[100] = '100,"word,100'
        table = table_of("a,b,c\n" + "\n".join(lines))
        assert table.row_count == 500
        assert "line 102" in table.note
        assert "broken quotes" in table.note
        (row,) = select_rows(table, None, "a == 100", limit=9).rows
        assert (row.line, row.values) == (102, ("100", '"word', "100"))

    def test_two_stray_quotes_do_not_join_the_rows_between_them(self) -> None:
        lines = [f"{i},word,{i}" for i in range(500)]
        lines[100], lines[300] = '100,"word,100', '300,word",300'
        table = table_of("a,b,c\n" + "\n".join(lines))
        assert table.row_count == 500
        assert "line 102" in table.note

    def test_broken_quotes_everywhere_end_in_lines_of_their_own(self) -> None:
        table = table_of("a,b\n" + "".join(f'{i},"x\n' for i in range(20_000)))
        assert table.row_count == 20_000
        assert "every line was read on its own" in table.note

    def test_rows_of_other_lengths_are_told(self) -> None:
        table = table_of("a,b\n1,2\n1\n1,2,3,4\n1,2\n")
        assert "1 row (first: line 3) with fewer cells" in table.note
        assert "1 row (first: line 4) with more cells" in table.note
        assert [row.values for row in select_rows(table, limit=9).rows][1:3] == [("1", ""), ("1", "2", "3", "4")]
        assert select_rows(table, ["column_4"], "column_3 == 3", limit=9).rows[0].values == ("4",)

    def test_a_field_larger_than_the_reader_takes_is_kept(self) -> None:
        table = table_of(f'a,b\n1,{"x" * 200_000}\n2,"{"y" * 200_000}"\n3,z\n')
        assert [len(values[1]) >= 200_000 for values in rows(table.text)] == [True, True, False]

    def test_json_lines_are_recognised_and_broken_ones_told(self) -> None:
        assert table_of(EVENTS, "text/plain").columns == ("kind", "user", "ms", "ok", "note")
        table = table_of(EVENTS + '{"kind": \n17\n', "application/jsonl")
        assert table.row_count == 4
        assert "1 row (first: line 5) that are no JSON" in table.note
        assert select_rows(table, ["value"], "value == 17", limit=9).rows[0].line == 6

    @pytest.mark.parametrize("text", ["", "\n\n", "some words\nand more\n", '{\n  "a": 1,\n  "b": 2\n}', '{"a": 1}'])
    def test_what_is_no_table_is_none(self, text: str) -> None:
        assert Table.read(text, "text/plain") is None

    def test_a_mark_of_the_byte_order_is_no_part_of_a_name(self) -> None:
        assert table_of("\ufeffa,b\n1,2\n").columns == ("a", "b")
        assert table_of('\ufeff{"a": 1}\n{"a": 2}\n', "text/plain").row_count == 2


CELLS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=8)


@given(
    body=st.lists(st.lists(CELLS, min_size=3, max_size=3).filter(any), max_size=8),
    delimiter=st.sampled_from([",", "\t"]),
    line_end=st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=80, deadline=None)
def test_what_the_standard_library_wrote_is_read_with_its_lines(
    body: list[list[str]], delimiter: str, line_end: str
) -> None:
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=delimiter, lineterminator=line_end, quoting=csv.QUOTE_ALL)
    lines = []
    for row in [["the first", "the second", "the third"], *body]:
        lines.append(written.getvalue().count("\n") + 1)
        writer.writerow(row)
    table = table_of(written.getvalue(), "text/csv" if delimiter == "," else "text/tab-separated-values")
    page = select_rows(table, limit=99)
    assert [(row.line, list(row.values)) for row in page.rows] == list(zip(lines[1:], body, strict=True))
    assert table.note == ""


class TestConditions:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("people > 100000", ["Bern", "Cork"]),
            ("people >= 130000 and people <= 130000.0", ["Bern"]),
            ("city == Bern or city = 'Cork'", ["Bern", "Cork"]),
            ("not city == Bern and people < 100000", ["Alba", "Dún, Laoghaire"]),
            ("not (city == Bern or city == Alba)", ["Cork", "Dún, Laoghaire"]),
            ("city contains 'L'", ["Dún, Laoghaire"]),
            ('"area km2" < 100', ["Alba", "Bern"]),
            ("`area km2` == ''", ["Dún, Laoghaire"]),
            ("zip == 1234", ["Alba"]),
            ("zip == '1234'", []),
            ("zip == '01234'", ["Alba"]),
            ("zip != 3000", ["Alba", "Cork", "Dún, Laoghaire"]),
            ("founded < 1191-06-01", ["Bern", "Cork"]),
            ("people > '200'", ["Alba", "Bern", "Cork", "Dún, Laoghaire"]),
            ("CITY <> Bern AND NOT people<2e3", ["Cork", "Dún, Laoghaire"]),
            ("city=='Bern'", ["Bern"]),
            ("a == 1 or people == 1", None),
        ],
    )
    def test_rows_are_kept_by_a_condition(self, where: str, expected: list[str] | None) -> None:
        if expected is None:
            with pytest.raises(InvalidValueError, match="unknown column 'a'"):
                names(where)
        else:
            assert names(where) == expected

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("ms > 5", [50, 500]),
            ("user.name == ann", [5]),
            ("user.name != ann", [50, 500]),
            ("user.name == null", [500]),
            ("user.roles.1 == b", [5]),
            ("user.roles contains '\"a\"'", [5]),
            ("ok == true", [5]),
            ("note contains at", [500]),
        ],
    )
    def test_json_lines_are_asked_by_nested_keys(self, where: str, expected: list[int]) -> None:
        assert [ms for (ms,) in rows(EVENTS, where, ["ms"])] == expected

    def test_quotes_within_quotes(self) -> None:
        text = "id,said\n1,it's\n2,C:\\temp\n"
        for where, expected in [("said == 'it''s'", "1"), (r"said == 'it\'s'", "1"), (r"said == 'C:\temp'", "2")]:
            assert rows(text, where, ["id"]) == [(expected,)]

    def test_long_numbers_are_compared_exactly(self) -> None:
        assert rows("id,x\n12345678901234567890,a\n12345678901234567891,b\n", "id == 12345678901234567891", ["x"]) == [
            ("b",)
        ]

    @pytest.mark.parametrize(
        ("where", "position", "expected"),
        [
            ("", 1, "a column"),
            ("people", 7, "==, !="),
            ("people > ", 10, "a value"),
            ("people > 5 city", 12, "'and', 'or' or the end"),
            ("(people > 5", 12, "')'"),
            ("people > 5 and and", 16, "a column"),
            ("city == 'Bern", 9, "a value"),
        ],
    )
    def test_a_mistake_is_shown_at_its_place(self, where: str, position: int, expected: str) -> None:
        with pytest.raises(InvalidValueError) as caught:
            names(where)
        message, _, caret = str(caught.value).split("\n")
        assert message.startswith(f"where: expected {expected}")
        assert message.endswith(f"at character {position}")
        assert caret.index("^") - 2 == position - 1

    def test_an_unknown_column_names_the_closest_and_all_others(self) -> None:
        with pytest.raises(
            InvalidValueError, match=r"unknown column 'peple'\. Closest: people\. There are: city, people"
        ):
            names("peple > 3")
        with pytest.raises(InvalidValueError, match=r"Closest: user\.name"):
            rows(EVENTS, None, ["user.nam"])
        with pytest.raises(InvalidValueError, match="unknown column 'x'"):
            rows(EVENTS, None, ["x"])

    def test_there_may_be_only_so_many_comparisons(self) -> None:
        with pytest.raises(InvalidValueError, match="at most 50 comparisons"):
            names(" or ".join(["people == 1"] * 51))

    @given(where=st.lists(st.sampled_from(PIECES), max_size=20).map("".join) | st.text(max_size=30))
    @example("(" * 4_000)
    @example("not " * 1_000 + "city == 1")
    @settings(max_examples=200, deadline=None)
    def test_whatever_the_condition_nothing_else_is_raised(self, where: str) -> None:
        try:
            found = names(where)
        except InvalidValueError as error:
            found = str(error).split("\n")
        assert len(found) <= 4


@given(text=st.text(st.sampled_from('ab1,;\t|"\n\r {}[]:'), max_size=60))
@settings(max_examples=200, deadline=None)
def test_whatever_the_text_it_is_read_or_not(text: str) -> None:
    for content_type in ["text/plain", "text/csv", "application/jsonl"]:
        table = Table.read(text, content_type)
        if table is not None:
            page = select_rows(table, limit=1_000)
            assert page.total_matching == table.row_count == len(page.rows)
            assert [row.line for row in page.rows] == sorted({row.line for row in page.rows})


class TestPages:
    def page(self, **options: Any) -> RowsPage:
        return select_rows(table_of("a,b\n" + "".join(f"x{i},{i % 2}\n" for i in range(100))), **options)

    def test_a_page_says_how_many_rows_there_are_and_how_to_go_on(self) -> None:
        page = self.page(columns=["a"], where="b == 1", limit=10, offset=20)
        assert [row.values for row in page.rows[:2]] == [("x41",), ("x43",)]
        assert page.rows[0].line == 43
        assert (page.columns, page.total_matching, page.total_rows, page.next_offset) == (("a",), 50, 100, 30)

    def test_the_last_page_has_none_after_it(self) -> None:
        assert self.page(where="b == 1", limit=10, offset=45).next_offset is None
        assert self.page(limit=10, offset=500).rows == ()

    def test_limits_are_checked(self) -> None:
        with pytest.raises(InvalidValueError, match="limit and offset must be 0 or more"):
            self.page(limit=-1)


def test_a_cell_of_any_depth_can_be_compared() -> None:
    deep = "[" * 900 + "]" * 900
    assert rows(f'{{"a": {deep}}}\n{{"a": {json.dumps("x" * 300_000)}}}\n', "a contains xxx", ["a"])[0][0][0] == "x"
