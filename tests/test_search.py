"""Search over what left the window: found by its words, at the right place, within bounds, whatever is asked."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.search import Addition, SearchIndex
from holdfast.search.chunks import chunks_of
from holdfast.search.embedding import Embedding
from holdfast.search.terms import searchable
from holdfast.testing import FakeClock

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
            ("it went 🚀🔥 at once", "🚀"),
            ("it went 🚀🔥 at once", "🚀🔥"),
            ("I ❤️ that", "❤"),
            ("a wal\u200brus and a soft\u00adhyphen", "walrus"),
            ("a wal\u200brus and a soft\u00adhyphen", "softhyphen"),
            ("a walrus swims", "wal\u200brus"),
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


UUID = "3f2b8c1e-9d4a-4e77-8b1f-0c5d6e7f8a9b"
HASH = "9c73d57aa1b2c3d4e5f60718293a4b5c6d7e8f90"


LONG_NAME = "shouldReturnNotFoundWhenCustomerDoesNotExistYet"


class TestIdentifiers:
    @pytest.mark.parametrize(
        ("identifier", "queries"),
        [
            ("getUserById", ["getUserById", "get_user_by_id", "GETUSERBYID", "user", "user by id"]),
            ("get_user_by_id", ["get_user_by_id", "getUserById", "user"]),
            ("ORD-4411", ["ORD-4411", "ord-4411", "4411", "ord"]),
            ("src/app/main.py:42", ["src/app/main.py:42", "main.py", "app/main.py", "main", "42", "main.py:42"]),
            (UUID, [UUID, UUID.upper(), "3f2b8c1e", "0c5d6e7f8a9b", "9d4a-4e77"]),
            ("jane.doe@mail.example.org", ["jane.doe@mail.example.org", "jane.doe", "mail.example.org", "doe"]),
            (
                "https://docs.example.org/a/b?page=7#top",
                ["https://docs.example.org/a/b?page=7", "docs.example.org/a/b"],
            ),
            ("v1.24.3", ["v1.24.3", "1.24.3", "24.3"]),
            ("1.24.3", ["1.24.3", "v1.24.3"]),
            (HASH, [HASH, HASH[:7], HASH[:12], HASH[:39]]),
            (HASH[:7], [HASH, HASH[:7]]),
            ("ORD4411", ["ORD4411", "4411", "ord", "ORD-4411"]),
            ("ORD-4411", ["ord4411"]),
            ("INV20240012", ["20240012", "inv"]),
            ("order8822", ["8822", "order"]),
            ("user4411account", ["4411", "4411account", "account"]),
            ("W8660475", ["W8660475", "8660475"]),
            ("Base64Encoder", ["encoder", "base64encoder", "Base64"]),
            ("Sha256Hasher", ["hasher"]),
            (LONG_NAME, [LONG_NAME, "ReturnNotFound", "DoesNotExistYet", "customer", "not_found"]),
            ("AbstractAnnotationConfigDispatcherServletInitializerZebra", ["dispatcher", "zebra"]),
            ("getBenutzerStraßeName", ["benutzer", "strasse", "BenutzerStraße"]),
            ("ПриветМир", ["ПриветМир", "Мир", "привет"]),
            ("test1Step2Case3", ["step", "case"]),
            ("63,007", ["63,007", "63007"]),
            ("63007", ["63,007"]),
            ("1,063,007.50", ["1063007"]),
        ],
    )
    async def test_they_are_found_whole_and_by_a_part(self, index, identifier, queries):
        await index.add("other", LONG_LOG.replace("42", "43"))
        await index.add("wanted", f"{LOG.replace('42', '43')}it was about {identifier} then\n")
        for query in queries:
            hit = await first(index, query)
            assert (hit.reference, identifier in shown(hit)) == ("wanted", True), query

    @pytest.mark.parametrize(
        ("identifier", "parts"),
        [
            ("getUserById", "get the user by id, user by user, or get_user_by_id(id)"),
            ("ORD-4411", "ord 17, order 4411, 4411 ord, ORD-4412, ORD-4410"),
            ("src/app/main.py:42", "src/main.py:42, app/src/main.py, main.py:40, 42 of src/app"),
            (UUID, " ".join(sorted(UUID.split("-")))),
            ("jane.doe@mail.example.org", "doe.jane@mail.example.org, jane@example.org, mail doe example.org"),
            ("https://docs.example.org/a/b?page=7", "https://example.org/docs/b/a?page=8 page 7"),
            ("v1.24.3", "v1.3.24, 1.3, 24.1, v1"),
            ("10.0.0.1", "10.0.1.0, 0.10.1, 1 of 10, 0 of 0"),
        ],
    )
    async def test_the_whole_comes_before_its_parts(self, index, identifier, parts):
        for number in range(60):
            await index.add(f"parts {number}", f"{parts}\n{parts}\n" * (number % 3 + 1))
        await index.add(
            "whole", f"{LOG}we looked at {identifier} and at some other things that day in the long office\n"
        )
        assert (await first(index, identifier)).reference == "whole"

    async def test_parts_in_a_row_come_before_the_same_parts_elsewhere(self, index):
        await index.add_all(
            Addition(f"r{n}", "not a return, found and not found: Return or Found or Not\n") for n in range(30)
        )
        await index.add("wanted", f"{LOG}{LONG_NAME} fails\n")
        answer = await index.search("ReturnNotFound")
        assert (answer.hits[0].reference, answer.missing) == ("wanted", ())

    async def test_parts_that_are_in_no_row_do_not_make_up_a_word(self, index):
        await index.add("parts", "found it, and did not return\n")
        assert (await index.search("ReturnNotFound")).missing == ("returnnotfound",)

    @pytest.mark.parametrize(
        ("held", "asked"),
        [("W8660475", "W8660499"), ("ORD-44110", "ORD-44119"), ("9f86d081ab", "9f86d081cd"), ("v20240012", "20240013")],
    )
    async def test_one_that_is_nowhere_is_not_taken_for_another(self, index, held, asked):
        await index.add("other", f"see {held} now\n")
        answer = await index.search(asked)
        assert answer.missing == (asked.lower().removeprefix("ord-"),)
        assert not answer.hits or asked.startswith("ORD")

    @pytest.mark.parametrize(
        "noise",
        [HASH, HASH.upper(), HASH[:10], "e29b", "0x7ffeeb3c", "aGVsbG8gd29ybGQhIHRoaXMgaXMgYmFzZTY0", "x7k2m9q4w1"],
    )
    async def test_what_chance_put_together_has_no_parts(self, noise):
        assert searchable(f"see {noise}") == f"see {noise.lower()}"

    async def test_a_short_hash_finds_the_long_one_too(self, index):
        await index.add("short", f"fixed in {HASH[:7]}\n")
        await index.add("long", f"commit {HASH}\n")
        assert {hit.reference for hit in (await index.search(HASH[:7])).hits} == {"short", "long"}


class TestManyPlaces:
    async def test_copies_of_a_passage_do_not_push_out_what_else_was_asked_for(self, index):
        await index.add_all(Addition(f"other {n}", LOG) for n in range(200))
        await index.add_all(
            Addition(f"copy {n}", "def walrus(tusk, whisker): return tusk + whisker\n") for n in range(20)
        )
        await index.add("elsewhere", "the seal is grey\n")
        hits = (await index.search("walrus tusk whisker return seal")).hits
        assert hits[0].reference.startswith("copy")
        assert "elsewhere" in [hit.reference for hit in hits]

    async def test_scores_go_down(self, index):
        await index.add_all(
            Addition(f"r{n}", f"walrus {'seal ' * (n % 3)} {'tusk' if n % 5 else ''}\n") for n in range(30)
        )
        scores = [hit.score for hit in (await index.search("walrus seal tusk", 20)).hits]
        assert scores == sorted(scores, reverse=True)

    async def test_of_many_that_hold_the_same_the_most_telling_come_first(self, index):
        await index.add_all(Addition(f"r{n}", f"a walrus and much else, {'filler ' * 100}\n") for n in range(200))
        await index.add("short", "walrus\n")
        assert (await first(index, "walrus")).reference == "short"
        assert (await index.search("walrus")).total_matching == 201

    async def test_a_question_in_many_common_words_is_answered(self, index):
        await index.add_all(Addition(f"r{n}", f"{LOG}message {n}\n") for n in range(100))
        answer = await index.search("info worker finished job without trouble message 2024 05")
        assert len(answer.hits) == 5


class TestAddingMany:
    async def test_all_are_found_with_their_titles_and_labels(self, index):
        additions = [Addition(f"r{n}", f"walrus{n} said hello\n", f"tool{n}", {"turn": f"{n}"}) for n in range(500)]
        await index.add_all(iter(additions))
        assert index.references == tuple(addition.reference for addition in additions)
        for number in (0, 250, 499):
            hit = await first(index, f"walrus{number}")
            assert (hit.reference, hit.title, hit.labels) == (f"r{number}", f"tool{number}", {"turn": f"{number}"})
            assert (await first(index, f"tool{number}")).reference == f"r{number}"

    async def test_the_last_of_the_same_reference_counts(self, index):
        await index.add_all([Addition("a", "old walrus\n"), Addition("b", "other\n"), Addition("a", "new seal\n")])
        assert (await index.search("walrus")).hits == ()
        assert (await first(index, "seal")).reference == "a"
        assert set(index.references) == {"a", "b"}

    async def test_the_oldest_leave_within_one_call(self):
        index = SearchIndex(max_bytes=3 * 1_010)
        await index.add_all(Addition(name, "walrus 123") for name in "abcdefgh")
        assert (index.references, set(index.uncovered)) == (("f", "g", "h"), set("abcde"))
        assert {hit.reference for hit in (await index.search("walrus")).hits} == set("fgh")
        await index.aclose()

    async def test_a_search_goes_on_meanwhile_and_finds_what_is_there(self, index):
        await index.add("small", "walrus\n")
        adding = asyncio.create_task(index.add_all(Addition(f"r{n}", LONG_LOG[n : n + 3_000]) for n in range(1_000)))
        while not index.holds("r10"):
            await asyncio.sleep(0)
        answer = await index.search("walrus")
        assert not adding.done()
        assert [hit.reference for hit in answer.hits] == ["small"]
        adding.cancel()

    async def test_a_cancelled_one_keeps_what_was_done_and_leaves_nothing_else_behind(self, index):
        adding = asyncio.create_task(
            index.add_all(Addition(f"r{n}", f"seal{n}\n{LONG_LOG[:9_000]}") for n in range(500))
        )
        while not index.holds("r10"):
            await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        done = index.references
        assert done == tuple(f"r{n}" for n in range(len(done)))
        assert len(done) < 500
        await index.add("after", "walrus\n")
        assert (await first(index, "walrus")).reference == "after"
        assert {hit.reference for hit in (await index.search(f"seal{len(done)} worker", 50)).hits} <= set(done)
        assert (await first(index, "seal3")).reference == "r3"

    async def test_many_are_removed_at_once(self, index):
        await index.add_all(Addition(f"r{n}", f"walrus {n}\n") for n in range(300))
        await index.remove(f"r{n}" for n in range(299))
        answer = await index.search("walrus")
        assert ([hit.reference for hit in answer.hits], answer.total_matching) == (["r299"], 1)

    async def test_anything_but_additions_is_refused(self, index):
        with pytest.raises(InvalidTypeError, match="what is added must be an Addition, got tuple"):
            await index.add_all([("a", "text")])
        with pytest.raises(InvalidTypeError, match="text must be a string, got bytes"):
            Addition("a", b"text")
        with pytest.raises(InvalidTypeError, match="labels must be a mapping of strings, got list"):
            Addition("a", "text", labels=["a"])


MEANINGS = (("cat", "kitten", "feline"), ("car", "vehicle", "automobile"), ("rain", "weather", "storm"))


def embed(texts):
    """Texts as points along axes of meaning."""
    words = [text.lower().split() for text in texts]
    return [[0.1, *(float(sum(map(own.count, alike))) for alike in MEANINGS)] for own in words]


async def embed_soon(texts):
    await asyncio.sleep(0)
    return embed(texts)


def hybrid(embedder, **options):
    index = SearchIndex(embedder=embedder, **options)
    additions = [Addition("pets", "the kitten sleeps\n"), Addition("roads", "an automobile waits\n")]
    return index, [*additions, *(Addition(f"other {n}", f"number {n} of the many things\n") for n in range(60))]


def refuse(texts):
    raise OSError("no such model")


class TestEmbedder:
    @pytest.mark.parametrize("embedder", [embed, embed_soon, lambda texts: embed_soon(texts)])
    async def test_what_is_near_in_meaning_is_found_without_a_common_word(self, embedder):
        index, additions = hybrid(embedder)
        await index.add_all(additions)
        await index.settled()
        assert (await first(index, "feline")).reference == "pets"
        assert (await first(index, "vehicle")).reference == "roads"
        assert (await index.search("feline")).missing == ("feline",)
        assert "kitten" in shown(await first(index, "feline"))
        await index.aclose()

    async def test_what_matches_in_both_ways_comes_first(self):
        index, additions = hybrid(embed)
        await index.add_all(
            [*additions, Addition("words", "a feline of many words\n"), Addition("near", "kitten cat\n")]
        )
        await index.settled()
        assert (await first(index, "feline")).reference == "words"
        await index.aclose()

    @pytest.mark.parametrize("copies", [1, 3, 8])
    @pytest.mark.parametrize(
        "query", ["order ORD-4411", "what became of order ORD-4411 of the customer", "order 4411", "order #A-4411"]
    )
    async def test_what_holds_the_identifier_is_not_pushed_out_by_what_is_only_alike(self, query, copies):
        index = SearchIndex(embedder=lambda texts: [[1.0, float("order" in text)] for text in texts])
        await index.add_all(
            Addition(f"r{n}", f"order ORD-{n}: the order of the customer is on its way\n") for n in range(5_000, 5_120)
        )
        await index.add_all(Addition(f"other {n}", f"nothing happened, {n}\n") for n in range(200))
        await index.add_all(
            Addition(f"wanted {n}", f"{LOG}ORD-4411: the parcel was lost, {n}\n") for n in range(copies)
        )
        await index.settled()
        references = [hit.reference for hit in (await index.search(query)).hits]
        assert sum(reference.startswith("wanted") for reference in references) == min(copies, 5)
        await index.aclose()

    async def test_one_that_hangs_keeps_one_search_waiting_and_is_left_alone_for_a_while(self, monkeypatch):
        monkeypatch.setattr("holdfast.search.embedding._LONGEST_WAIT_FOR_A_QUERY", 0.01)
        clock, asked, hangs = FakeClock(), [], True

        async def sometimes(texts):
            asked.append(texts)
            if hangs and texts == ["feline"]:
                await asyncio.Event().wait()
            return embed(texts)

        index, additions = hybrid(Embedding(sometimes, clock=clock))
        await index.add_all(additions)
        await index.settled()
        assert [(await index.search("feline")).hits for _ in range(3)] == [()] * 3
        assert asked.count(["feline"]) == 1
        hangs = False
        clock.advance(29)
        assert (await index.search("feline")).hits == ()
        await index.add("more", "and more\n")
        await index.settled()
        assert asked[-1] == ["and more\n"]
        clock.advance(2)
        assert (await first(index, "feline")).reference == "pets"
        await index.aclose()

    async def test_a_search_may_be_confined_and_what_left_is_not_found(self):
        index, additions = hybrid(embed)
        await index.add_all(additions)
        await index.settled()
        assert {hit.reference for hit in (await index.search("feline", within=["roads"])).hits} == {"roads"}
        await index.remove(["pets"])
        assert "pets" not in {hit.reference for hit in (await index.search("feline", 50)).hits}
        await index.add("pets", "the kitten is back\n")
        await index.settled()
        assert (await first(index, "feline")).reference == "pets"
        await index.aclose()

    async def test_it_is_called_in_batches_off_the_event_loop(self):
        calls = []

        def watched(texts):
            calls.append((len(texts), threading.current_thread() is threading.main_thread()))
            return embed(texts)

        index, additions = hybrid(watched)
        await index.add_all(additions)
        await index.settled()
        assert calls == [(32, False), (30, False)]
        await index.aclose()

    @pytest.mark.parametrize(
        "embedder",
        [
            refuse,
            lambda texts: [],
            lambda texts: None,
            lambda texts: 5,
            lambda texts: [[1.0]] * (len(texts) + 1),
            lambda texts: [[1.0] * (1 + place % 2) for place in range(len(texts) + 1)][1:],
            lambda texts: [[] for _ in texts],
            lambda texts: [[math.nan, 1.0] for _ in texts],
            lambda texts: [[math.inf, 1.0] for _ in texts],
            lambda texts: [["a", "b"] for _ in texts],
            lambda texts: ["ab" for _ in texts],
        ],
    )
    async def test_one_that_fails_or_returns_nonsense_is_complained_about_once(self, embedder, caplog):
        index, additions = hybrid(embedder)
        with caplog.at_level(logging.WARNING):
            await index.add_all(additions)
            await index.settled()
            await index.add("more", "and more\n")
            await index.settled()
            assert (await first(index, "kitten")).reference == "pets"
        [record] = caplog.records
        assert record.message.startswith("the embedder fails, and the search goes by words alone: ")
        await index.aclose()

    async def test_one_that_fails_for_the_query_leaves_the_words(self, caplog):
        index, additions = hybrid(lambda texts: refuse(texts) if texts == ["kitten"] else embed(texts))
        await index.add_all(additions)
        await index.settled()
        assert [hit.reference for hit in (await index.search("kitten")).hits] == ["pets"]
        assert "no such model" in caplog.text
        await index.aclose()

    async def test_what_failed_is_tried_again_when_something_is_added(self, caplog):
        down = [True]
        index, additions = hybrid(lambda texts: refuse(texts) if down[0] else embed(texts))
        await index.add_all(additions)
        await index.settled()
        assert (await index.search("feline")).hits == ()
        down[0] = False
        await index.add("more", "and more\n")
        await index.settled()
        assert (await first(index, "feline")).reference == "pets"
        await index.aclose()

    async def test_vectors_count_toward_the_bound(self):
        index = SearchIndex(max_bytes=20_000, embedder=lambda texts: [[1.0] * 1_000 for _ in texts])
        await index.add_all(Addition(name, "walrus\n") for name in "abcdefgh")
        await index.settled()
        assert 1 <= len(index.references) < 5
        assert set(index.references) | set(index.uncovered) == set("abcdefgh")
        assert {hit.reference for hit in (await index.search("walrus")).hits} == set(index.references)
        await index.aclose()

    async def test_closing_does_not_wait_for_it(self):
        async def never(texts):
            await asyncio.Event().wait()

        index, additions = hybrid(never)
        await index.add_all(additions)
        await asyncio.sleep(0)
        await asyncio.wait_for(index.aclose(), timeout=20)

    async def test_what_cannot_be_called_is_refused(self):
        with pytest.raises(InvalidTypeError, match=r"embedder must be a function .* got str"):
            SearchIndex(embedder="text-embedding-3")

    def test_an_index_may_be_used_in_one_event_loop_after_the_other(self):
        index, additions = hybrid(embed_soon)

        async def use() -> str:
            await index.add_all(additions)
            await index.settled()
            return (await first(index, "feline")).reference

        asyncio.run(index.add_all(additions))
        assert asyncio.run(use()) == asyncio.run(use()) == "pets"


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
            " ".join(f"w{number}" for number in range(100_000, 120_000)),
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


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove"]), st.lists(st.integers(0, 9), min_size=1, max_size=6)), max_size=8
)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, length=st.sampled_from([1, 40, 4_000]))
def test_after_any_additions_and_removals_just_what_is_there_is_found(steps, length):
    asyncio.run(follow(steps, length))


async def follow(steps, length):
    index, there = SearchIndex(), {}
    for number, (step, names) in enumerate(steps):
        if step == "add":
            there.update((f"r{name}", f"walrus{name}x{number}y") for name in names)
            await index.add_all(Addition(f"r{name}", f"{LONG_LOG[:length]}\n{there[f'r{name}']}") for name in names)
        else:
            await index.remove(f"r{name}" for name in names)
            there = {reference: word for reference, word in there.items() if int(reference[1:]) not in names}
    assert set(index.references) == set(there)
    for reference, word in there.items():
        answer = await index.search(word, within=None if length == 40 else [reference])
        assert answer.hits[0].reference == reference
        assert word in shown(answer.hits[0])
    assert {hit.reference for hit in (await index.search("walrus", 50)).hits} == set(there)
    await index.aclose()


def test_an_index_may_be_used_in_one_event_loop_after_the_other():
    index = SearchIndex()

    async def add_some() -> int:
        await asyncio.gather(*(index.add(f"r{n}", "hello " * 3_000) for n in range(5)))
        return len((await index.search("hello")).hits)

    assert asyncio.run(add_some()) == asyncio.run(add_some()) > 0


def test_an_index_may_be_used_in_several_event_loops_at_the_same_time():
    index = SearchIndex(max_bytes=400_000)

    async def work(name: int) -> None:
        for n in range(15):
            await index.add(f"{name}-{n % 4}", f"walrus{'abcd'[name]}{chr(97 + n)} " + "hello there " * 1_500)
            await index.search("hello")
            await index.remove([f"{name}-{(n + 2) % 4}"])

    with ThreadPoolExecutor(4) as threads:
        for worker in [threads.submit(asyncio.run, work(name)) for name in range(4)]:
            worker.result(60)
    for name in range(4):
        answer = asyncio.run(index.search(f"walrus{'abcd'[name]}o"))
        assert [hit.reference for hit in answer.hits] == [f"{name}-2"]
    asyncio.run(index.aclose())


def test_an_event_loop_that_was_left_in_the_midst_of_something_holds_up_no_other():
    index = SearchIndex()
    left = asyncio.new_event_loop()
    task = left.create_task(index.add("large", "hello there " * 200_000))
    left.run_until_complete(asyncio.sleep(0.01))
    assert not task.done()

    async def work() -> int:
        await index.add("other", "walrus")
        return len((await index.search("walrus")).hits)

    assert asyncio.run(asyncio.wait_for(work(), 60)) == 1
    left.run_until_complete(asyncio.wait([task]))
    left.close()
    assert asyncio.run(work()) == 1
    asyncio.run(index.aclose())


DEPLOYMENTS = [
    "the nightly deployment reads its settings from ops/nightly/settings_eu.toml before it starts",
    "who waits for the nightly deployment is told by notifyWaiting and by release-bot@example.org",
    "the weekly deployment of build-4411 has nothing to do with that",
    "lunch is at noon",
]


@pytest.mark.parametrize("embedder", [None, lambda texts: [[1.0, 0.0]] * len(texts)])
async def test_echoes_are_found_after_all_else(embedder):
    index = SearchIndex(embedder=embedder)
    echo = "search for the nightly deployment: nightly deployment"
    await index.add_all([Addition(f"echo-{number}", f"{echo} {number}", is_echo=True) for number in range(150)])
    await index.add("original", "a nightly thing, and much later, beside other words, a deployment " + "of this " * 80)
    await index.settled()
    hits = (await index.search("nightly deployment", limit=3)).hits
    assert [hit.reference.partition("-")[0] for hit in hits] == ["original", "echo", "echo"]
    await index.remove(["original"])
    hits = (await index.search("nightly deployment", limit=3)).hits
    assert [hit.reference.partition("-")[0] for hit in hits] == ["echo"] * 3
    await index.aclose()


async def test_names_near_the_words_of_a_query_are_told(index):
    for number, text in enumerate(DEPLOYMENTS):
        await index.add(f"note-{number}", text)
    answer = await index.search("nightly deployment", limit=1)
    assert len(answer.hits) == 1
    assert set(answer.names) == {"ops/nightly/settings_eu.toml", "notifyWaiting", "release-bot@example.org"}


async def test_names_of_many_and_of_better_passages_come_first(index):
    for number in range(8):
        await index.add(f"note-{number}", f"the deployment went to host_{number}, as shared_plan says, step {number}")
    answer = await index.search("deployment", limit=2)
    assert answer.names[0] == "shared_plan"
    assert len(answer.names) == 9


async def test_names_of_the_query_are_known_already(index):
    await index.add("note", "the deployment went to host_5, as shared_plan says")
    answer = await index.search("deployment to host_5")
    assert answer.names == ("shared_plan",)


async def test_names_are_read_out_of_json(index):
    await index.add(
        "log", '{"log": "deployment began\\nload_settings failed\\tretry_later", "of": "10:42, and/or 2024"}'
    )
    answer = await index.search("deployment")
    assert answer.names == ("load_settings", "retry_later", "and/or")


async def test_names_are_bounded(index):
    await index.add("list", " ".join(f"deployment host_{number}" for number in range(5_000)) + "_x" * 5_000)
    answer = await index.search("deployment")
    assert 50 < len(answer.names) <= 500
    assert max(map(len, answer.names)) <= 160


STOPS_WHILE_IT_INDEXES = """
import asyncio, sys
from holdfast.search import SearchIndex

async def main():
    adding = asyncio.ensure_future(SearchIndex().add("log", "\\n".join(f"line {n} of word{n}" for n in range(100_000))))
    await asyncio.sleep(float(sys.argv[1]))
    adding.cancel()

asyncio.run(main())
"""


@pytest.mark.parametrize("seconds", [0.01, 0.02, 0.03, 0.05, 0.08])
def test_a_program_may_end_while_something_is_indexed(seconds):
    """The connection was closed at exit, under the feet of the thread that wrote: a crash, at one exit in two."""
    command = [sys.executable, "-c", STOPS_WHILE_IT_INDEXES, str(seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
