"""Search over what left the window: found by its words, at the right place, within bounds, whatever is asked."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.search import SearchIndex
from holdfast.search.chunks import chunks_of

LOG = "".join(f"2024-05-{day:02} INFO worker {day} finished job {day * 37} without trouble\n" for day in range(1, 29))
LONG_LOG = "".join(f"{number} INFO the worker finished a job and waits for the next one\n" for number in range(2_000))


@pytest.fixture
async def index():
    index = SearchIndex()
    yield index
    await index.aclose()


async def first(index, query):
    return (await index.search(query)).hits[0]


def shown(hit):
    return "\n".join(line.text for line in hit.excerpt)


class TestFinding:
    async def test_a_hit_names_the_content_the_lines_and_shows_them(self, index):
        await index.add("ref-1", "alpha\nbeta\ngamma secret delta\n", title="read_file", labels={"role": "tool"})
        hit = await first(index, "SECRET")
        assert (hit.reference, hit.title, hit.labels) == ("ref-1", "read_file", {"role": "tool"})
        assert (hit.first_line, hit.last_line, hit.first_column) == (1, 3, 0)
        assert (hit.start_character, hit.end_character) == (0, 30)
        assert [(line.number, line.text, line.part) for line in hit.excerpt] == [
            (1, "alpha", False),
            (2, "beta", False),
            (3, "gamma secret delta", False),
        ]

    async def test_the_excerpt_keeps_to_its_size_and_shows_the_best_lines(self, index):
        await index.add("log", LOG + "2024-05-29 ERROR disk full on worker 7\n" + LOG)
        answer = await index.search("disk full", excerpt_characters=100)
        hit = answer.hits[0]
        assert "ERROR disk full on worker 7" in shown(hit)
        assert sum(len(line.text) for line in hit.excerpt) <= 100
        assert [line.number for line in hit.excerpt if "disk" in line.text] == [29]

    @pytest.mark.parametrize(
        ("text", "query"),
        [
            ("value = getUserById(42)", "getUserById"),
            ("value = getUserById(42)", "user by id"),
            ("parseHTTPResponse(raw)", "response http"),
            ("order ORD-4411 was paid", "ORD-4411"),
            ("order ORD-4411 was paid", "4411"),
            ("at src/app/main.py:42 in run", "main.py:42"),
            ("self.gpt_prompts.read_only_files_prefix", "read_only_files"),
            ("see https://example.org/a/b?page=7#top", "https://example.org/a/b?page=7"),
            ("position 153.10876908275, -81.563696", "-81.563696"),
            ("commit 9c73d57aa1b2c3d4e5f60718293a4b5c6d7e8f90", "9c73d57"),
            ("the request timeout was reached", "timeouts"),
            ('{"name": "caf\\u00e9 \\u4e2d\\u6587"}', "中文 café"),
            ('"trace": "first line\\nValueError: bad"', "ValueError"),
            ("Über Größe und Maß", "uber grosse mass"),
            ("Ёлка стоит в лесу", "елка"),
            ("مُحَمَّد يكتب رسالة", "محمد"),
            ("हिन्दी में पाठ्यक्रम", "पाठ्यक्रम"),
            ("如前所述，机器学习可以使用数据", "机器学习"),
            ("スライスを渡してください", "スライス"),
            ("전제하에 주소를 포함한다는", "주소"),
            ("ภาษาไทยไม่มีช่องว่าง", "ช่องว่าง"),
            ("ｆｕｌｌ ｗｉｄｔｈ text", "full width"),
        ],
    )
    async def test_identifiers_and_words_of_all_scripts_are_found(self, index, text, query):
        await index.add("other", LOG)
        await index.add("wanted", f"{LOG}{text}\n{LOG}")
        hit = await first(index, query)
        assert hit.reference == "wanted"
        assert text in shown(hit)

    async def test_an_identifier_comes_before_its_scattered_words(self, index):
        scattered = "".join(f"10 hosts, 0 errors, 1 warning, {number} ms\n" for number in range(500))
        await index.add("log", f"{scattered}peer 10.0.0.1 went away\n{scattered}")
        assert "10.0.0.1" in shown(await first(index, "10.0.0.1"))

    async def test_words_in_one_line_come_before_the_same_words_far_apart(self, index):
        apart = "red\n" + "filler\n" * 20 + "green\n" + "filler\n" * 20 + "blue\n"
        await index.add("apart", apart * 3)
        await index.add("together", "filler\n" * 40 + "blue green red\n" + "filler\n" * 40)
        assert (await first(index, "red green blue")).reference == "together"

    async def test_a_rare_word_decides_before_common_ones(self, index):
        await index.add("log", f"{LONG_LOG}7 INFO the walrus finished\n{LONG_LOG}")
        assert "walrus" in shown(await first(index, "the worker finished a job and walrus"))

    async def test_a_content_is_found_by_its_title_at_its_beginning(self, index):
        await index.add("weather", LONG_LOG, title="get_weather")
        await index.add("other", LONG_LOG, title="read_file")
        hit = await first(index, "weather")
        assert (hit.reference, hit.first_line) == ("weather", 1)

    async def test_a_word_in_a_giant_line_is_found_by_its_column(self, index):
        line = "lorem ipsum dolor " * 5_000
        text = f"first\n{line}needle_42 {line}\nlast\n"
        await index.add("minified", text)
        hit = await first(index, "needle_42")
        assert (hit.first_line, hit.last_line) == (2, 2)
        assert text[hit.start_character : hit.end_character].count("needle_42") == 1
        [line_shown] = [part for part in hit.excerpt if "needle_42" in part.text]
        assert line_shown.part
        assert text.split("\n")[1][line_shown.column :].startswith(line_shown.text)

    async def test_neighbours_are_one_hit_and_leave_room_for_others(self, index):
        await index.add("long", "walrus and nothing else in this line\n" * 60)
        answer = await index.search("walrus", limit=50)
        ranges = sorted((hit.first_line, hit.last_line) for hit in answer.hits)
        assert len(ranges) < answer.total_matching
        assert [line for start, end in ranges for line in range(start, end + 1)] == list(range(1, 61))

    async def test_windows_line_ends_do_not_show(self, index):
        await index.add("crlf", "one\r\ntwo walrus\r\nthree\r\n")
        assert [line.text for line in (await first(index, "walrus")).excerpt] == ["one", "two walrus", "three"]

    async def test_the_answer_says_what_nothing_holds_and_how_much_there_is(self, index):
        await index.add("log", LONG_LOG + "walrus\n")
        answer = await index.search("walrus xylophone")
        assert answer.missing == ("xylophone",)
        assert answer.total_matching == 1
        assert (await index.search("xylophone")).hits == ()

    async def test_a_search_may_be_confined(self, index):
        for name in ("a", "b", "c"):
            await index.add(name, "walrus\n")
        answer = await index.search("walrus", within=["b", "c", "unknown"])
        assert {hit.reference for hit in answer.hits} == {"b", "c"}
        assert answer.total_matching == 2
        assert (await index.search("walrus", within=[])).hits == ()


class TestHostileQueries:
    @pytest.mark.parametrize(
        "query",
        [
            "",
            " \n\t",
            "\0",
            "wal\0rus",
            '"',
            '""" " walrus "',
            "walrus AND NOT (OR NEAR(walrus, 5) *",
            "terms:walrus ^walrus walrus*",
            "'; DROP TABLE terms; --",
            "-walrus +walrus {walrus} [walrus]",
            "🦭🦭 walrus 🦭",
            "\ud800 walrus",
            "walrus " * 20_000,
            " ".join(f"w{number}" for number in range(20_000)),
            "w" * 100_000,
            "海" * 5_000,
        ],
    )
    async def test_any_query_gets_an_answer(self, index, query):
        await index.add("log", LOG + "the walrus 海海\n")
        answer = await asyncio.wait_for(index.search(query), timeout=20)
        assert bool(answer.hits) == ("walrus" in query or "海" in query)

    async def test_a_very_long_query_says_how_much_of_it_was_not_looked_for(self, index):
        await index.add("words", " ".join(f"w{number}" for number in range(1_000)))
        answer = await index.search(" ".join(f"w{number}" for number in range(1_000)))
        assert answer.hits
        assert answer.ignored == 1_000 - 32

    @pytest.mark.parametrize("limit", [0, -1, 51, True, "5", 2.0])
    async def test_a_limit_out_of_bounds_is_refused(self, index, limit):
        with pytest.raises(InvalidValueError, match="limit must be a number from 1 to 50"):
            await index.search("walrus", limit)

    async def test_what_is_no_text_is_refused(self, index):
        with pytest.raises(InvalidTypeError, match="query must be a string, got int"):
            await index.search(5)
        with pytest.raises(InvalidTypeError, match="text must be a string, got bytes"):
            await index.add("a", b"bytes")
        with pytest.raises(InvalidTypeError, match="labels must be strings"):
            await index.add("a", "text", labels={"turn": 5})


class TestLeaving:
    async def test_what_was_removed_is_not_found(self, index):
        await index.add("a", LONG_LOG + "walrus\n", title="seal")
        await index.add("b", LONG_LOG + "walrus\n")
        await index.remove(["a", "unknown"])
        answer = await index.search("walrus seal")
        assert {hit.reference for hit in answer.hits} == {"b"}
        assert (answer.missing, answer.uncovered) == (("seal",), 0)
        assert (index.references, index.holds("a"), index.holds("b")) == (("b",), False, True)

    async def test_adding_again_replaces(self, index):
        await index.add("a", "old walrus\n")
        await index.add("a", "new seal\n")
        assert (await index.search("walrus")).hits == ()
        assert (await first(index, "seal")).reference == "a"
        assert index.references == ("a",)

    async def test_the_oldest_leaves_for_the_newest_and_the_answer_says_so(self):
        index = SearchIndex(max_bytes=3 * 1_010)
        for name in "abcd":
            await index.add(name, "walrus 123")
        answer = await index.search("walrus")
        assert {hit.reference for hit in answer.hits} == {"b", "c", "d"}
        assert (answer.uncovered, index.uncovered) == (1, ("a",))
        assert (await index.search("walrus", within=["b"])).uncovered == 0
        await index.remove(["a"])
        assert (await index.search("walrus")).uncovered == 0
        await index.aclose()

    async def test_a_content_larger_than_the_index_costs_no_other_its_place(self):
        index = SearchIndex(max_bytes=5_000)
        await index.add("small", "walrus\n")
        await index.add("large", "walrus\n" * 1_000)
        answer = await index.search("walrus")
        assert {hit.reference for hit in answer.hits} == {"small"}
        assert (answer.uncovered, index.uncovered) == (1, ("large",))
        await index.aclose()

    async def test_a_cancelled_add_leaves_nothing_behind_and_may_be_repeated(self, index):
        adding = asyncio.create_task(index.add("a", LONG_LOG * 5 + "walrus\n"))
        await index.search("walrus")
        await asyncio.sleep(0.01)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert (index.references, index.uncovered) == ((), ("a",))
        await index.add("b", "walrus\n")
        answer = await index.search("worker walrus")
        assert [hit.reference for hit in answer.hits] == ["b"]
        assert answer.missing == ("worker",)
        await index.add("a", "walrus\n")
        assert index.uncovered == ()

    async def test_a_search_goes_on_while_a_large_content_is_added(self, index):
        await index.add("small", "walrus\n")
        adding = asyncio.create_task(index.add("large", LONG_LOG * 20))
        await asyncio.sleep(0)
        answer = await index.search("walrus")
        assert not adding.done()
        assert [hit.reference for hit in answer.hits] == ["small"]
        adding.cancel()

    async def test_contents_added_at_once_are_all_found(self, index):
        await asyncio.gather(*(index.add(f"r{number}", f"walrus{number}\n" + LOG) for number in range(20)))
        hits = [await first(index, f"walrus{number}") for number in range(20)]
        assert [hit.reference for hit in hits] == [f"r{number}" for number in range(20)]

    async def test_closing_twice_is_fine_and_use_after_it_is_a_clear_error(self, index):
        await index.add("a", "walrus\n")
        await index.aclose()
        await index.aclose()
        for use in (index.add("b", "text"), index.search("walrus"), index.remove(["a"])):
            with pytest.raises(HoldfastError, match="this search index is closed"):
                await use

    async def test_an_empty_index_and_empty_contents_answer(self, index):
        assert (await index.search("walrus")).hits == ()
        await index.add("empty", "")
        await index.add("blank", " \n" * 5_000)
        assert (await index.search("walrus")).hits == ()


def test_a_bound_that_is_none_is_refused():
    with pytest.raises(InvalidValueError, match="max_bytes must be a positive integer"):
        SearchIndex(max_bytes=0)


def test_a_python_without_full_text_search_gets_a_clear_error(monkeypatch):
    class WithoutFts5(sqlite3.Connection):
        def __call__(self, sql):
            raise sqlite3.OperationalError("no such function: fts5")

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, factory=WithoutFts5, **options))
    with pytest.raises(HoldfastError, match="needs SQLite with the FTS5 extension"):
        SearchIndex()


PIECES = st.sampled_from(
    [
        "\n",
        "\r\n",
        " ",
        "\t",
        "word",
        "a.b",
        "x" * 700,
        "z" * 1_500,
        "你好",
        "é",
        "\\u00e9",
        "\\n",
        "\0",
        "\ud800",
        "🦭",
        '"',
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=60).map("".join)


@settings(max_examples=100, deadline=None)
@given(text=st.lists(PIECES, max_size=200).map("".join))
@example(text="\n" * 5_000)
@example(text=" " * 5_000)
@example(text="x" * 5_000)
def test_chunks_cover_the_whole_text_and_know_where_they_stand(text):
    covered = 0
    for chunk in chunks_of(text):
        before = text[: chunk.start]
        assert chunk.text
        assert len(chunk.text) <= 1_200
        assert chunk.start <= covered < chunk.end
        assert text[chunk.start : chunk.end] == chunk.text
        assert chunk.line == before.count("\n") + 1
        assert chunk.column == len(before) - (before.rfind("\n") + 1)
        assert chunk.last_line == text[: chunk.end - 1].count("\n") + 1
        assert chunk.goes_on == (chunk.end < len(text) and not chunk.text.endswith("\n"))
        covered = chunk.end
    assert covered == len(text)


@settings(max_examples=40, deadline=None)
@given(before=TEXTS, after=TEXTS, query=st.text(max_size=30), data=st.data())
def test_any_text_is_indexed_any_query_answered_and_a_unique_word_is_the_first_hit(before, after, query, data):
    word = data.draw(st.sampled_from(["walrus77", "Котёл", "getWalrusById", "海象牙"]))
    text = f"{before} {word} {after}"
    asyncio.run(find(text, before.count("\n") + 1, word, query))


async def find(text, line, word, query):
    index = SearchIndex()
    await index.add("other", LOG)
    await index.add("wanted", text)
    hit = await first(index, word)
    assert hit.reference == "wanted"
    assert hit.first_line <= line <= hit.last_line
    assert word in text[hit.start_character : hit.end_character]
    for hit in (await index.search(query)).hits:
        assert sum(len(part.text) for part in hit.excerpt) <= 400
    await index.remove(["wanted"])
    assert (await index.search(word)).hits == ()
    await index.aclose()


def test_an_index_may_be_used_in_one_event_loop_after_the_other():
    index = SearchIndex()

    async def add_some() -> int:
        await asyncio.gather(*(index.add(f"r{n}", "hello " * 3_000) for n in range(5)))
        return len((await index.search("hello")).hits)

    assert asyncio.run(add_some()) == asyncio.run(add_some()) > 0
