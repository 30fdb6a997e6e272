"""Line lookups: exact, from a few blocks, without another scan."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidValueError
from holdfast.patterns.lines import BLOCK_BYTES, LineIndex

# Short ones, and such as end just before, at and behind the edge of a block.
LINES = st.one_of(
    st.sampled_from([b"", b"x", b"one\r", b"\r", b"\xff\x00"]),
    st.sampled_from([BLOCK_BYTES - 2, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 2 * BLOCK_BYTES]).map(
        b"y".__mul__
    ),
)
CONTENTS = st.tuples(st.lists(LINES, max_size=8), st.sampled_from([b"", b"\n"])).map(
    lambda made: b"\n".join(made[0]) + made[1]
)


def lines_of(content: bytes) -> list[bytes]:
    return [line.removesuffix(b"\n") for line in content.split(b"\n")][
        : -1 if content.endswith(b"\n") or not content else None
    ]


@pytest.mark.parametrize(
    ("content", "lines"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\nb", 2), (b"a\n\n", 2), (b"\n\n\n", 3)]
)
def test_a_last_line_without_its_end_counts(content, lines):
    index = LineIndex.of(content)
    assert (index.lines, index.size) == (lines, len(content))


@settings(max_examples=60, deadline=None)
@given(content=CONTENTS, data=st.data())
def test_a_window_holds_its_lines_and_little_more(content, data):
    index, lines = LineIndex.of(content), lines_of(content)
    if not lines:
        return
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    window = index.window_for(first, last)
    part = content[window.start : window.end]
    assert index.cut(part, window, first, last) == [line.removesuffix(b"\r") for line in lines[first - 1 : last]]
    start, end = window.bounds(part, first, last)
    assert content[start:end].removesuffix(b"\n") == b"\n".join(lines[first - 1 : last])
    assert len(part) <= end - start + 2 * BLOCK_BYTES


@settings(max_examples=60, deadline=None)
@given(content=CONTENTS)
def test_the_beginning_of_a_line_is_found_in_one_block(content):
    index = LineIndex.of(content)
    expected = 0
    for number, line in enumerate(lines_of(content), start=1):
        edge = index.edge_of(number)
        assert edge.end - edge.start <= BLOCK_BYTES
        assert edge.locate(content[edge.start : edge.end]) == index.start_of(number, content) == expected
        expected += len(line) + 1
    assert index.start_of(index.lines + 1, content) == len(content)


@settings(max_examples=60, deadline=None)
@given(content=CONTENTS, data=st.data())
def test_a_byte_knows_its_line_from_its_block_alone(content, data):
    index = LineIndex.of(content)
    if not content:
        return
    offset = data.draw(st.integers(0, len(content) - 1))
    start, end = index.block_of(offset)
    line = index.line_of(offset, content)
    assert index.line_of(offset, content[start:end], content_start=start) == line == content.count(b"\n", 0, offset) + 1


def test_lines_that_do_not_exist_are_refused():
    index = LineIndex.of(b"a\nb\n")
    for ask in (
        lambda: index.window_for(0, 1),
        lambda: index.window_for(2, 1),
        lambda: index.window_for(1, 3),
        lambda: index.edge_of(4),
    ):
        with pytest.raises(InvalidValueError, match="there are 2 lines"):
            ask()
    with pytest.raises(InvalidValueError, match="from 0 to 3"):
        index.line_of(4, b"a\nb\n")


def test_a_million_lines_need_an_index_of_some_hundred_numbers():
    content = b"a line of some length\n" * 1_000_000
    index = LineIndex.of(content)
    assert index.lines == 1_000_000
    assert len(index.line_feeds) < 400
    assert index.bounds(777_777, 777_777, content) == (777_776 * 22, 777_777 * 22)


def test_one_huge_line_is_found_without_reading_it():
    content = b"head\n" + b"x" * 10_000_000 + b"\ntail"
    index = LineIndex.of(content)
    begin, end = index.edge_of(2), index.edge_of(3)
    assert begin.locate(content[begin.start : begin.end]) == 5
    assert end.locate(content[end.start : end.end]) == 10_000_006
    assert begin.end - begin.start + end.end - end.start <= 2 * BLOCK_BYTES
