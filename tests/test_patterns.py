"""Patterns that nobody vouches for: exact like grep, linear for whatever is asked, and loud when they are wrong."""

from __future__ import annotations

import itertools
import random
import re
import sys
import time
from collections.abc import Iterable
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.patterns.compiling import LineMatch, Matches, Pattern, Spans, compile_pattern
from holdfast.patterns.lines import LineIndex


def without_re2(pattern: str, **options: bool) -> Pattern:
    with patch.dict(sys.modules, {"re2": None}):
        return compile_pattern(pattern, **options)


def search(pattern: str | Pattern, content: bytes | str, *, limit: int = 1_000, **options) -> Matches:
    content = content.encode() if isinstance(content, str) else content
    compiled = compile_pattern(pattern) if isinstance(pattern, str) else pattern
    return compiled.matching_lines(content, LineIndex.of(content), limit=limit, **options)


def numbers(pattern: str | Pattern, content: bytes | str, **options) -> list[int]:
    return [match.line for match in search(pattern, content, **options).lines]


def line_by_line(pattern: re.Pattern[str], content: bytes) -> list[LineMatch]:
    """What a search must find, the slow way."""
    found, start = [], 0
    lines = content.split(b"\n")
    for number, line in enumerate(lines if lines[-1] else lines[:-1], start=1):
        text = line.removesuffix(b"\r").decode()
        if (match := pattern.search(text)) is not None:
            place = [start + len(text[:end].encode()) for end in (None, match.start(), match.end())]
            found.append(LineMatch(number, start, *place))
        start += len(line) + 1
    return found


def starts_of(matches: Iterable[LineMatch]) -> list[tuple[int, ...]]:
    """All but the matches' ends: where what is repeated may be empty, `re` ends a match earlier than others do."""
    return [match[:4] for match in matches]


def in_characters(content: bytes, match: LineMatch) -> tuple[str, int, int]:
    """A line, and where the match in it begins and ends."""
    line, before, found = (
        content[match.line_start : end].decode() for end in (match.line_end, match.match_start, match.match_end)
    )
    return line, len(before), len(found)


CLASSES = ["[ab]", "[^a]", r"[^a\s]", r"[\sä]", r"[\u00e4b]", "[a-c]"]
ESCAPES = [r"\w", r"\d", r"\s", r"\b", r"\W", r"\D", r"\S", r"\A", r"\Z", r"\.", r"\r", r"\u00e4"]
ATOMS = st.sampled_from([*"ab-ä.^$", *CLASSES, *ESCAPES])
REPEATS = st.sampled_from(["*", "+", "?", "*?", "+?", "{2}", "{0,2}", "{,2}"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, REPEATS).map(lambda made: f"(?:{made[0]}){made[1]}"),
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda made: f"({'|'.join(made)})"),
    ),
    max_leaves=6,
)
SIMPLE_PATTERNS = st.lists(
    st.lists(st.one_of(ATOMS, st.sampled_from([".*", ".+"])), max_size=5).map("".join), min_size=1, max_size=3
).map("|".join)
CONTENTS = st.tuples(
    st.lists(st.text(alphabet="abc ä-1.\r\t", max_size=6), max_size=8), st.integers(1, 12), st.sampled_from(["", "\n"])
).map(lambda made: ("\n".join(made[0] * made[1]) + made[2]).encode())


class TestLinesAreMatchedAsLineByLine:
    @settings(max_examples=100, deadline=None)
    @given(pattern=PATTERNS, content=CONTENTS, ignore_case=st.booleans(), limit=st.integers(0, 40))
    def test_with_re2(self, pattern, content, ignore_case, limit):
        flags = re.ASCII | (re.IGNORECASE if ignore_case else 0)
        expected = line_by_line(re.compile(pattern, flags), content)
        found = search(compile_pattern(pattern, ignore_case=ignore_case), content, limit=limit)
        assert found.total == len(expected)
        assert starts_of(found.lines) == starts_of(expected[:limit])
        for match in found.lines:
            line, start, end = in_characters(content, match)
            # `re` takes the given end for the end of a word.
            assert r"\b" in pattern or re.compile(pattern, flags).fullmatch(line, start, end)

    @settings(max_examples=120, deadline=None)
    @given(pattern=SIMPLE_PATTERNS.filter(bool), content=CONTENTS, limit=st.integers(0, 40))
    def test_with_a_simple_pattern_and_no_re2(self, pattern, content, limit):
        expected = line_by_line(re.compile(pattern, re.ASCII), content)
        compiled = without_re2(pattern)
        assert compiled.engine == "simple"
        assert search(compiled, content, limit=limit) == Matches(tuple(expected[:limit]), len(expected))

    @settings(max_examples=100, deadline=None)
    @given(
        text=st.text(alphabet="abA .*(ä\r\\", min_size=1, max_size=3),
        content=CONTENTS,
        ignore_case=st.booleans(),
        installed=st.booleans(),
    )
    def test_with_plain_text(self, text, content, ignore_case, installed):
        if ignore_case and not installed:
            text = text.replace("ä", "a")
        expected = line_by_line(re.compile(re.escape(text), re.IGNORECASE if ignore_case else 0), content)
        compile_it = compile_pattern if installed else without_re2
        pattern = compile_it(text, plain_text=True, ignore_case=ignore_case)
        assert pattern.engine == "plain text"
        assert search(pattern, content) == Matches(tuple(expected), len(expected))

    @settings(max_examples=100, deadline=None)
    @given(pattern=PATTERNS, content=CONTENTS, data=st.data())
    def test_between_two_lines(self, pattern, content, data):
        first = data.draw(st.integers(1, 20))
        last = data.draw(st.integers(first, 30))
        expected = [m for m in line_by_line(re.compile(pattern, re.ASCII), content) if first <= m.line <= last]
        found = search(pattern, content, first_line=first, last_line=last)
        assert found.total == len(expected)
        assert starts_of(found.lines) == starts_of(expected)


class TestAMatchStaysInItsLine:
    @pytest.mark.parametrize("pattern", ["a.b", "a[^x]b", r"a\sb", r"a\Wb", "(?s)a.b", r"a[\s\S]b", "a(?:.|x)*b"])
    def test_whatever_could_take_a_line_feed(self, pattern):
        assert numbers(pattern, "a\nb\na b") == [3]

    @pytest.mark.parametrize("pattern", ["^b$", r"\Ab\Z", r"\Ab\z", "(?-m)^b$", "(?m)^b$", "(?-m:^)b(?-m:$)"])
    def test_anchors_are_the_ends_of_the_line_whatever_flags_are_set(self, pattern):
        assert numbers(pattern, "a\nb\nab\r\nb\r\nb") == [2, 4, 5]

    @pytest.mark.parametrize("pattern", ["x*", "^", "$", "(?:)", ".*", "a|"])
    def test_what_matches_nothing_matches_each_line(self, pattern):
        assert numbers(pattern, "a\n\n\r\nb") == [1, 2, 3, 4]
        assert numbers(pattern, "a\n\n") == [1, 2]
        assert numbers(pattern, "") == []

    def test_a_carriage_return_belongs_to_the_end_only_before_the_line_feed(self):
        assert search(r"\s$", b"a\r\nb \r\nc\r\r\nd\re\n").lines == (
            LineMatch(2, 3, 5, 4, 5),
            LineMatch(3, 7, 9, 8, 9),
        )

    @pytest.mark.parametrize("pattern", ["a\nb", r"a\nb", r"a\x0ab", r"a\x{A}", "\\Qa\nb\\E", r"(\n|a)"])
    def test_a_line_feed_is_refused_as_it_could_match_nothing(self, pattern):
        with pytest.raises(InvalidValueError, match="never goes beyond its line"):
            compile_pattern(pattern)

    def test_a_line_feed_in_plain_text_is_refused(self):
        for ignore_case in (True, False):
            with pytest.raises(InvalidValueError, match="one line at a time"):
                compile_pattern("a\nb", plain_text=True, ignore_case=ignore_case)

    def test_a_line_feed_in_a_class_is_harmless(self):
        assert numbers(r"a[^\n]*b", "a-b\na\nb") == [1]


class TestBytesOfAllKinds:
    def test_a_dot_is_a_character(self):
        assert numbers("^a.b$", "aäb\na😀b\naxxb") == [1, 2]

    def test_a_byte_that_is_no_character_is_one_unknown_character(self):
        content = b"caf\xe9 au lait\nplain\n\xff\xfe\x00,x\n"
        assert search("caf. au", content).lines == (LineMatch(1, 0, 12, 0, 7),)
        assert numbers("^[^,]*,x", content) == [3]
        assert numbers(without_re2("caf. au"), content) == [1]

    def test_what_was_shown_for_such_bytes_is_found_again(self):
        content = b"caf\xe9\ncut \xe2\x82 off\nwhole"
        for line, shown in enumerate(content.decode(errors="replace").split("\n")[:2], start=1):
            assert numbers(shown, content) == [line]
            assert numbers(compile_pattern(shown, plain_text=True), content) == [line]

    def test_nul_bytes_are_characters_like_others(self):
        assert numbers("a.b", b"a\0b\n\0") == [1]
        assert numbers("\0", b"a\0b\n\0") == [1, 2]
        assert numbers(r"\x00$", b"a\0b\n\0") == [2]

    @settings(max_examples=100, deadline=None)
    @given(
        content=st.binary(max_size=200), pattern=st.sampled_from([".", r"\w+", "^.*$", "é", r"[^a]$", r"\b", "\ufffd"])
    )
    def test_random_bytes_never_fail_and_offsets_lie_in_their_line(self, content, pattern):
        index = LineIndex.of(content)
        for match in search(pattern, content).lines:
            assert match.line_start <= match.match_start <= match.match_end <= match.line_end
            assert content.count(b"\n", 0, match.line_start) == match.line - 1
            assert index.start_of(match.line, content) == match.line_start

    def test_case_is_ignored_in_all_alphabets(self):
        assert numbers(compile_pattern("straße Ω", ignore_case=True), "STRAßE ω\nx") == [1]

    def test_letters_beyond_ascii_have_their_own_class(self):
        assert numbers(r"^\w+$", "abc\nähre") == [1]
        assert numbers(r"^\pL+$", "abc\nähre") == [1, 2]


# From lists of regular expressions that took services down, and from papers and test suites about them.
CATASTROPHIC = [
    (r"((a+))+$", "a", "!"),
    (r"(a+)+$", "a", "!"),
    (r"(a|aa)+$", "a", "!"),
    (r"(a|a)*$", "a", "!"),
    (r"(a|a?)+$", "a", "!"),
    (r"(a*)*$", "a", "!"),
    (r"(a*)+b", "a", ""),
    (r"([a-zA-Z]+)*$", "a", "!"),
    (r"(.*a){20}$", "a", "!"),
    (r"(\w+\s?)*$", "a", "!"),
    (r"(\w+\s*)+:", "ab ", "!"),
    (r"\s+$", " ", "x"),
    (r"^\s+|\s+$", " ", "x"),
    (r"(x+x+)+y", "x", ""),
    (r"(x+)*y", "x", "z"),
    (r"(.+)+\d{3}$", "a", "!"),
    (r"(?:a?){30}a{30}b", "a", ""),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a", ""),
    (
        r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}[a-z0-9]+[.]{1}(([a-z]{2,3})|([a-z]{2,3}[.]{1}[a-z]{2,3}))$",
        "a",
        "!",
    ),
    (r"^[a-zA-Z0-9_.+-]+@([a-zA-Z0-9-]+\.)+[a-zA-Z]{2,}$", "a@a.", "!"),
    (r"^([\w.-]+)+@([\w-]+\.)+\w+$", "a.", "!"),
    (r"^(\w+([-+.']\w+)*)+@\w+([-.]\w+)*\.\w+$", "a-", "!"),
    (r"^(https?://)?([\da-z.-]+)\.([a-z.]{2,6})([/\w .-]*)*/?$", "a.", "!"),
    (r"(?i)\b((?:https?://|www\d{0,3}[.])(?:[^\s()<>]+|\(([^\s()<>]+|(\([^\s()<>]+\)))*\))+)$", "http://(", "!"),
    (r"^(?:(?:https?|ftp)://)?(?:\S+(?::\S*)?@)?(?:[a-z0-9]+-?)*[a-z0-9]+$", "a-", "!"),
    (r"<(\w+)([^>]*)*>.*</\w+>$", "<a ", "!"),
    (r"<!--(.|\s)*-->", "<!-- ", ""),
    (r"(<[^>]*>|[^<]*)*$", "<", ">!"),
    (r"<a\s+(?:[^>]*?\s+)?href=([\"'])(.*?)([\"'])", "<a ", ""),
    (r"^(.*?,){11}P", "1,", ""),
    (r"^(([^,]*,)*)*\"$", "a,", "x"),
    (r"^(\"([^\"]|\"\")*\",?|[^,]*,?)*$", '"a",', '"'),
    (r"^(\d+)*$", "1", "x"),
    (r"^(-?\d+)*(\.\d+)*$", "1", "x"),
    (r"^\$?(\d{1,3},?(\d{3},?)*\d{3}(\.\d{0,2})?|\d{1,3}(\.\d{0,2})?|\.\d{1,2})*$", "1", "x"),
    (r"^(([0-1]?\d|2[0-3]):?)*([0-5]\d:?)*$", "1", "x"),
    (r"(?:(?:\d{1,3}\.?)+){4,}$", "1.", "x"),
    (r"^(([a-f0-9]{1,4}:?)*)*::$", "a:", "x"),
    (r"(\\?.)*\"$", "\\a", "x"),
    (r"/\*(?:[^*]|\*[^/])*\*/", "/**", ""),
    (r"(\/\*(\s|.)*?\*\/)|(\/\/.*)$", "/*", ""),
    (r"(?:\"(?:\\.|[^\\\"])*\"|'(?:\\.|[^\\'])*'|\S+)+=$", '"', "x"),
    (r"^((?:[^\\\/]*[\\\/])*)(.*?)((?:\.[^.]*)?)$!", "/a", ""),
    (r"^(?:.?\s)*([\w-]+)=(.*);$", "a =", ""),
    (r"(([^\s]+\s?)+;)+$", "a ", "x"),
    (r"x*x*x*x*x*x*x*x*y", "x", ""),
    (r".*.*=.*", "x", ""),
    (
        r"(?:(?:\"|'|\]|\}|\\|\d|(?:nan|infinity|true|false|null|undefined|symbol|math)|`|-|\+)+[)]*;?((?:\s|-|~|!|\{\}|\|\||\+)*.*(?:.*=.*)))",
        "x",
        "",
    ),
    (r"^(?:\s*(?:\w+\s*=\s*\w*\s*,?)*)*$", "a=a,", "!"),
    (
        r"(ht|f)tp(s?)\:\/\/[0-9a-zA-Z]([-.\w]*[0-9a-zA-Z])*(:(0-9)*)*(\/?)([a-zA-Z0-9\-\.\?\,\'\/\\\+&%\$#_]*)?$",
        "http://a",
        "!",
    ),
    (r"^([^a]*a){1,30}$", "a", "b!"),
    (r"(b|a+)*c", "ab", ""),
]


class TestCatastrophicPatterns:
    def test_there_are_enough_of_them(self):
        assert len({pattern for pattern, _, _ in CATASTROPHIC}) >= 45

    @pytest.mark.parametrize(("pattern", "part", "tail"), CATASTROPHIC)
    @pytest.mark.parametrize("length", [41, 100_000])
    def test_none_takes_long(self, pattern, part, tail, length):
        text = (part * length)[: length - len(tail)] + tail
        before = time.monotonic()
        found = search(pattern, f"first\n{text}\n{text}", deadline=before + 20)
        assert found.counted_to is None
        assert time.monotonic() - before < 15

    @pytest.mark.parametrize(("pattern", "part", "tail"), CATASTROPHIC)
    def test_without_re2_they_are_refused(self, pattern, part, tail):
        if re.fullmatch(r"(?:\.\*|=)+", pattern):
            return
        with pytest.raises(InvalidValueError, match=re.escape("pip install 'holdfast[patterns]'")):
            without_re2(pattern)

    @pytest.mark.parametrize("pattern", ["a.*a.*a.*a.*a.*a.*b", ".*.*.*.*=", "[a-z][a-z].*[0-9]$|a.*b|b.*a", "a" * 199])
    def test_what_remains_without_re2_is_linear(self, pattern):
        before = time.monotonic()
        assert search(without_re2(pattern), "a" * 198 + "\n" + "a " * 50_000, deadline=before + 20).total == 0
        assert time.monotonic() - before < 15


class TestMuchContent:
    def test_a_line_of_ten_megabytes(self):
        content = b"head\n" + b"x" * 5_000_000 + b"needle 7" + b"y" * 5_000_000 + b"\ntail 7"
        for pattern in (
            compile_pattern(r"needle \d"),
            compile_pattern("needle 7", plain_text=True),
            without_re2(r"le \d"),
        ):
            match, *others = search(pattern, content, deadline=time.monotonic() + 20).lines
            assert (match.line, match.line_start, match.line_end) == (2, 5, 10_000_013)
            assert content[match.match_start : match.match_end].endswith(b"le 7")
            assert others == []

    @pytest.mark.parametrize("pattern", ["x", "^", r"\d$", "x|y"])
    def test_a_million_matching_lines_are_counted_and_few_are_kept(self, pattern):
        before = time.monotonic()
        found = search(pattern, b"x 1\n" * 1_000_000, limit=3)
        assert ([match.line for match in found.lines], found.total) == ([1, 2, 3], 1_000_000)
        assert time.monotonic() - before < 15

    def test_each_third_of_a_million_lines(self):
        content = b"one 1\ntwo\nthree\n" * 333_333
        assert search(r"\d", content, limit=0).total == 333_333
        assert search(compile_pattern("two", plain_text=True), content, limit=0).total == 333_333
        last = search("two", content, limit=2, first_line=999_998)
        assert [match.line for match in last.lines] == [999_998]

    def test_lines_are_exact_across_regions_with_both_kinds_of_ends(self):
        chosen = random.Random(5)
        lines = [b"%d %s" % (number, b"z" * chosen.randrange(90)) for number in range(60_000)]
        content = b"".join(line + chosen.choice([b"\n", b"\r\n"]) for line in lines)
        found = search(r"^\d*77 z*$", content)
        assert [match.line for match in found.lines] == [n + 1 for n in range(60_000) if n % 100 == 77]
        for match in found.lines:
            assert content[match.line_start : match.line_end] == lines[match.line - 1]


class TestTheDeadline:
    def test_what_was_not_counted_is_said(self):
        content = b"some line with a 1 in it\n" * 200_000
        clock = itertools.count()
        found = search("1", content, limit=5, deadline=4, clock=lambda: next(clock))
        assert found.counted_to is not None
        assert 0 < found.counted_to < 200_000
        assert found.total == found.counted_to

    def test_it_may_have_passed_before_the_search_began(self):
        found = search("1", b"0\n1\n1", first_line=2, limit=5, deadline=0, clock=lambda: 1.0)
        assert found == Matches((), 0, counted_to=1)

    def test_a_huge_line_that_would_take_too_long_is_not_begun(self):
        chosen = random.Random(7)
        line = bytes(chosen.choices(b"ab", k=2_000_000))
        before = time.monotonic()
        found = search("[ab]*a[ab]{900}c", b"abc\n" + line, deadline=before + 0.5)
        assert found.counted_to == 1
        assert time.monotonic() - before < 10


class TestEveryMatchInALine:
    @settings(max_examples=100, deadline=None)
    @given(pattern=PATTERNS, content=CONTENTS, limit=st.integers(1, 5))
    def test_pages_of_matches_are_all_matches(self, pattern, content, limit):
        compiled = compile_pattern(pattern)
        everything = compiled.matches_in(content, limit=10_000)
        paged: list[tuple[int, int]] = []
        page = Spans((), 0)
        while page.go_on_at is not None:
            page = compiled.matches_in(content, start=page.go_on_at, limit=limit)
            paged += page.spans
        assert everything == Spans(tuple(paged))

    @pytest.mark.parametrize("compile_it", [compile_pattern, without_re2])
    def test_all_of_them_one_behind_the_other(self, compile_it):
        line = "ä1 ä2\r\nä3 x ä4".encode()
        found = [line[start:end].decode() for start, end in compile_it(r"ä\d").matches_in(line, limit=9).spans]
        assert found == ["ä1", "ä2", "ä3", "ä4"]
        assert compile_it(r"ä\d$").matches_in(line, limit=9) == Spans(((4, 7), (15, 18)))
        assert compile_it("x|ä4|1").matches_in(line, start=4, limit=9) == Spans(((13, 14), (15, 18)))

    def test_a_limit_or_the_deadline_says_where_to_go_on(self):
        pattern = compile_pattern("a", plain_text=True)
        assert pattern.matches_in(b"a a a", limit=2) == Spans(((0, 1), (2, 3)), go_on_at=3)
        assert pattern.matches_in(b"a a a", limit=3) == Spans(((0, 1), (2, 3), (4, 5)))
        assert pattern.matches_in(b"a a a", start=1, limit=3, deadline=0, clock=lambda: 1.0) == Spans((), go_on_at=1)

    def test_many_matches_in_a_huge_line_are_found_in_one_pass(self):
        found = compile_pattern("a[0-9]|never").matches_in(b"a1 " * 20_000, limit=30_000)
        assert len(found.spans) == 20_000


class TestWhatIsWrongIsShown:
    @pytest.mark.parametrize(
        ("pattern", "position", "reason"),
        [
            ("foo(bar", 4, "never closed"),
            ("(a)(b", 4, "never closed"),
            ("a)b", 2, "closes nothing"),
            ("x[abc", 2, "bracket is never closed"),
            ("ä[z-a]", 3, "does not exist"),
            ("[[:what:]]", 2, "does not exist"),
            (r"\p{Elvish}", 1, "does not exist"),
            ("*.py", 1, "nothing before this to repeat"),
            ("a**", 2, "one repetition follows another"),
            ("a{2000}", 2, "1,000 times at most"),
            (r"^$\y", 3, "escape means nothing"),
            ("a\\", 2, "nothing follows the last backslash"),
            ("a(?=b)", 2, "lookahead and lookbehind are not supported"),
            ("(?<!a)b", 1, "lookahead and lookbehind are not supported"),
            (r"(a)\1", 4, "back-references are not supported"),
            (r"(?P<n>a)(?P=n)", 9, "back-references are not supported"),
            ("(?>a)", 1, "atomic groups are not supported"),
            ("C++", 2, "possessive repetitions are not supported"),
            ("(?#no)a", 1, "comments are not supported"),
            ("(?x)a", 1, "kind of group does not exist"),
            (r"a\C", 2, "a single byte, is not supported"),
            ("a\ud800", 2, "half a character"),
        ],
    )
    def test_a_caret_stands_under_the_place(self, pattern, position, reason):
        with pytest.raises(InvalidValueError, match=reason) as caught:
            compile_pattern(pattern)
        _, shown, caret, *_ = str(caught.value).split("\n")
        assert f"at character {position}:" in str(caught.value)
        assert shown[2:].encode(errors="replace").decode()[:5] == pattern.replace("\ud800", "·")[:5]
        assert caret.index("^") - 2 == position - 1

    def test_a_long_pattern_is_shown_around_the_place(self):
        with pytest.raises(InvalidValueError, match="at character 501") as caught:
            compile_pattern("x" * 500 + ")" + "y" * 400)
        _, shown, caret, *_ = str(caught.value).split("\n")
        assert len(shown) < 90
        assert shown[caret.index("^")] == ")"

    def test_a_pattern_that_grows_too_large_is_refused(self):
        with pytest.raises(InvalidValueError, match="too large"):
            compile_pattern(r"\pL{900}\pN{900}")

    @pytest.mark.parametrize("pattern", ["*.py", "foo(bar", "C++", "array[0", r"C:\users"])
    def test_what_looks_like_plain_text_is_told_how_to_be_that(self, pattern):
        with pytest.raises(InvalidValueError, match="plain_text=true"):
            compile_pattern(pattern)
        assert numbers(compile_pattern(pattern, plain_text=True), f"x\nsome {pattern} here") == [2]

    def test_what_is_meant_as_a_pattern_is_not(self):
        with pytest.raises(InvalidValueError) as caught:
            compile_pattern(r"(foo|\d+.*")
        assert "plain_text" not in str(caught.value)

    def test_an_empty_an_endless_and_a_strange_pattern(self):
        with pytest.raises(InvalidValueError, match="must not be empty"):
            compile_pattern("")
        with pytest.raises(InvalidValueError, match="at most 1,000 characters, got 1,001"):
            compile_pattern("a" * 1_001, plain_text=True)
        with pytest.raises(InvalidTypeError, match="must be text"):
            compile_pattern(7)

    def test_bounds_and_an_index_of_something_else(self):
        pattern, index = compile_pattern("a"), LineIndex.of(b"abc")
        with pytest.raises(InvalidValueError, match="of 3 bytes"):
            pattern.matching_lines(b"ab", index, limit=1)
        with pytest.raises(InvalidValueError, match="first_line"):
            pattern.matching_lines(b"abc", index, first_line=0, limit=1)
        with pytest.raises(InvalidValueError, match="limit"):
            pattern.matching_lines(b"abc", index, limit=-1)
        assert pattern.matching_lines(b"abc", index, first_line=2, limit=1) == Matches((), 0)

    @settings(max_examples=120, deadline=None)
    @given(
        pattern=st.text(alphabet="ab()[]{}?*+|\\^$.:-,<>=!Pdnxu019\ud800ä", min_size=1, max_size=12),
        installed=st.booleans(),
    )
    def test_a_random_pattern_is_searched_for_or_refused(self, pattern, installed):
        try:
            compiled = (compile_pattern if installed else without_re2)(pattern)
        except InvalidValueError:
            return
        search(compiled, "ab\n(a)\n" * 40)


class TestWithoutRe2:
    @pytest.mark.parametrize(
        ("pattern", "position", "reason"),
        [
            ("a(b|c)", 2, "a group is not available"),
            ("ab+", 3, "a repetition other than"),
            (r"\pL", 1, "this escape is not available"),
            ("a[[:alpha:]]", 2, "this class is not available"),
            ("a[+--]", 2, "this class is not available"),
            (r"a.*(?i)b", 4, "a group is not available"),
        ],
    )
    def test_what_is_missing_is_said_with_its_remedy(self, pattern, position, reason):
        with pytest.raises(InvalidValueError, match=reason) as caught:
            without_re2(pattern)
        assert f"at character {position}:" in str(caught.value)
        assert "pip install 'holdfast[patterns]'" in str(caught.value)

    @pytest.mark.parametrize(("pattern", "position"), [("a[z-a]", 2), ("a[b", 2), (r"a[b\]", 2), ("a)", 2), ("[]", 1)])
    def test_what_is_wrong_is_wrong_here_too(self, pattern, position):
        with pytest.raises(InvalidValueError, match=f"at character {position}:"):
            without_re2(pattern)

    @pytest.mark.parametrize(
        ("pattern", "content", "lines"),
        [
            ("err.*time", "error: timeout\ntime of error", [1]),
            ("ERROR|WARN|^$", "an ERROR\n\nfine\nWARN", [1, 2, 4]),
            (r"\bid=\d\d\b", "id=12\nid=123\nvoid=12", [1]),
            (r"[^\s,]\.[a-z_.-]\Q*(\E", "x.y*(\n .y*(", [1]),
            (r"\x41\x{e4}\u00e4[\x{e4}\u00f6]\/$", "Aääö/\nAäää", [1]),
            ("a.+b.*?c", "ab c\na bc", [2]),
            (r"[]a]\]", "]]\na]\nb]", [1, 2]),
        ],
    )
    def test_simple_patterns_work(self, pattern, content, lines):
        assert numbers(without_re2(pattern), content) == numbers(pattern, content) == lines

    def test_case_is_ignored_for_ascii_and_refused_for_other_letters(self):
        assert numbers(without_re2("eRRor.*X", ignore_case=True), "ERROR x\nx") == [1]
        for plain_text in (True, False):
            with pytest.raises(InvalidValueError, match="only the letters from a to z"):
                without_re2("Ärger", plain_text=plain_text, ignore_case=True)

    def test_an_endless_pattern_is_refused(self):
        with pytest.raises(InvalidValueError, match="at most 200 parts"):
            without_re2("a" * 201)


def test_a_pattern_says_what_runs_it():
    assert compile_pattern("a").engine == "re2"
    assert compile_pattern("a", plain_text=True).engine == "plain text"
    assert compile_pattern("a", plain_text=True, ignore_case=True).engine == "plain text"
    assert without_re2("a").engine == "simple"
    assert without_re2("a", plain_text=True).engine == "plain text"
