"""The retrieval tool: what it shows, within which bounds, and how it goes on."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offloading import LOG, PNG, conversation, converse_result, offloaded, references_of, retrieved, turns

from holdfast import ContextOffloader, FileStorage, InMemoryStorage
from holdfast.hooks import Conversation
from holdfast.messages import Document, Image
from holdfast.offload import Retrieved
from holdfast.testing import FlakyStorage, SlowStorage
from holdfast.tokens import estimate_text

BUDGET = 2_500


class Shelf:
    """An offloader with one content, and the tool's answers about it."""

    def __init__(self, offloader: ContextOffloader, talk: Conversation) -> None:
        self.offloader = offloader
        self.talk = talk

    @property
    def reference(self) -> str:
        return references_of(self.offloader)[0]

    async def ask(self, **arguments: Any) -> str:
        answer = await retrieved(self.offloader, self.talk, self.reference, **arguments)
        assert not answer.is_error, answer.text
        assert estimate_text(answer.text) <= BUDGET
        return answer.text

    async def refusal(self, **arguments: Any) -> str:
        answer = await retrieved(self.offloader, self.talk, self.reference, **arguments)
        assert answer.is_error, answer.text
        return answer.text


async def shelf_with(content: Any, **options: Any) -> Shelf:
    offloader, talk = ContextOffloader(**options), conversation()
    await offloaded(offloader, content, talk)
    assert references_of(offloader), "the content is too small to leave"
    return Shelf(offloader, talk)


def go_on(answer: str) -> dict[str, Any] | None:
    """Return the arguments that the note at the end of an answer names."""
    note = answer.rpartition("\n")[2]
    if "to go on, call again with " not in note:
        return None
    named = note.partition("to go on, call again with ")[2].rstrip("]").partition("; ")[0]
    found = re.findall(r"(\w+)=(\{[^}]*\}|\d+)", named)
    return {name: json.loads(value) for name, value in found}


# Lines


async def test_a_line_range_is_shown_with_numbers():
    shelf = await shelf_with(LOG)
    answer = await shelf.ask(line_range={"start": 100, "end": 102})
    lines = LOG.split("\n")
    assert answer == f"100: {lines[99]}\n101: {lines[100]}\n102: {lines[101]}\n[lines 100–102 of 4,000]"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"start": 3_999}, "3999: "),
        ({"start": -2}, "3999: "),
        ({"start": -2, "end": -1}, "3999: "),
        ([3_999, 4_000], "3999: "),
        ("3999-4000", "3999: "),
        ('{"start": 3999, "end": 9999}', "3999: "),
        ({"start": "3999", "end": 4_000.0}, "3999: "),
        (4_000, "4000: "),
    ],
)
async def test_a_line_range_is_understood_as_models_write_it(given, expected):
    shelf = await shelf_with(LOG)
    answer = await shelf.ask(line_range=given)
    assert answer.startswith(expected)
    assert answer.endswith("–4,000 of 4,000]") or answer.endswith("[lines 4,000–4,000 of 4,000]")


async def test_everything_is_paged_to_its_end():
    shelf = await shelf_with(LOG)
    arguments: dict[str, Any] | None = {}
    read: list[str] = []
    while arguments is not None:
        answer = await shelf.ask(**arguments)
        read += [line.partition(": ")[2] for line in answer.split("\n")[:-1]]
        arguments = go_on(answer)
    assert "\n".join(read) == LOG


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\n\r"), max_size=60), max_size=40
    ),
    st.integers(1, 30),
)
async def test_any_text_is_paged_to_its_end(lines, times):
    text = "\n".join([*lines * times, "x" * 700, *["the end of it"] * 40])
    offloader, talk = ContextOffloader(threshold=200, preview_tokens=50, answer_tokens=300), conversation()
    await offloaded(offloader, text, talk)
    shelf, read, arguments = Shelf(offloader, talk), [], {"line_range": {"start": 1}}
    while arguments is not None:
        answer = (await retrieved(offloader, talk, shelf.reference, **arguments)).text
        assert estimate_text(answer) <= 300
        if "characters 1–" in answer and "in line " in answer:
            giant = int(re.search(r"in line ([\d,]+) of", answer)[1].replace(",", ""))
            read.append(text.split("\n")[giant - 1])
            following = re.search(r"for the lines after it, with line_range=(\{.*?\})", answer)
            arguments = {"line_range": json.loads(following[1])} if following else None
            continue
        read += [line.partition(": ")[2] for line in answer.split("\n")[:-1]]
        arguments = go_on(answer)
    assert "\n".join(read) == text


async def test_a_small_content_comes_back_as_it_was():
    shelf = await shelf_with("a line\n" * 200, threshold=200, preview_tokens=50, answer_tokens=2_000)
    assert await shelf.ask() == "a line\n" * 200


@pytest.mark.parametrize("given", [{"start": 5_000}, {"start": 9, "end": 3}, {"start": 0}, "some", {"from": 1}, {}, []])
async def test_a_line_range_that_is_none_is_explained(given):
    shelf = await shelf_with(LOG)
    refusal = await shelf.refusal(line_range=given)
    assert "line_range" in refusal or "there are 4,000" in refusal


async def test_line_ranges_after_the_first_are_read_in_parts():
    class Counting(InMemoryStorage):
        wholes, parts = 0, 0

        async def retrieve(self, reference):
            self.wholes += 1
            return await super().retrieve(reference)

        async def retrieve_range(self, reference, start, end):
            self.parts += end - start
            return await super().retrieve_range(reference, start, end)

    storage = Counting()
    shelf = await shelf_with(LOG * 20, storage=storage)
    for start in range(1, 70_000, 7_000):
        await shelf.ask(line_range={"start": start, "end": start + 5})
    assert storage.wholes == 1
    assert storage.parts < len(LOG) * 20 / 2


# Patterns


async def test_a_pattern_shows_matching_lines_with_their_surroundings():
    shelf = await shelf_with(LOG.replace("request 2000 took", "request 2000 FAILED after"))
    answer = await shelf.ask(pattern=r"FAILED|nonsense", context_lines=1)
    numbers = [line.split(" ")[0] for line in answer.split("\n")[:-1]]
    assert numbers == ["2000:", "2001>", "2002:"]
    assert answer.endswith("[1 of 1 matching lines, of 4,000 lines]")


async def test_a_pattern_within_a_line_range():
    shelf = await shelf_with(LOG)
    answer = await shelf.ask(pattern="took 5 ms", line_range={"start": 1_000, "end": 2_000}, context_lines=0)
    numbers = [int(line.partition(">")[0]) for line in answer.split("\n")[:-1]]
    assert numbers == [n + 1 for n in range(4_000) if n % 97 == 5 and 1_000 <= n + 1 <= 2_000]


async def test_many_matches_are_paged():
    shelf = await shelf_with(LOG)
    found: list[int] = []
    arguments: dict[str, Any] | None = {}
    while arguments is not None:
        answer = await shelf.ask(pattern="INFO", context_lines=0, **arguments)
        assert "of 4,000 matching lines" in answer or found
        found += [int(number) for number in re.findall(r"^(\d+)>", answer, re.MULTILINE)]
        arguments = go_on(answer)
    assert found == list(range(1, 4_001))


async def test_surroundings_that_overlap_are_shown_once():
    shelf = await shelf_with(LOG)
    answer = await shelf.ask(pattern="request (10|12|20) ", context_lines=3)
    numbers = [int(number) for number in re.findall(r"^(\d+)[:>]", answer, re.MULTILINE)]
    assert numbers == [*range(8, 17), *range(18, 25)]
    assert answer.count("\n--\n") == 1


async def test_plain_text_and_case():
    shelf = await shelf_with(LOG.replace("request 7 took", "Request (7) took"))
    assert "8> " in await shelf.ask(pattern="Request (7)", plain_text=True, context_lines=0)
    assert "8> " in await shelf.ask(pattern="rEQUEST (7)", plain_text=True, ignore_case=True, context_lines=0)
    nothing = await shelf.ask(pattern="REQUEST")
    assert nothing == "[No line matches among lines 1–4,000 of 4,000; with ignore_case=true, 4,000 do.]"


async def test_an_invalid_pattern_shows_the_position():
    shelf = await shelf_with(LOG)
    refusal = await shelf.refusal(pattern="took [0-9")
    shown, caret = next(
        (line, below) for line, below in zip(refusal.split("\n"), refusal.split("\n")[1:], strict=False) if "^" in below
    )
    assert shown[caret.index("^")] == "["


async def test_a_match_in_a_giant_line_is_shown_with_what_is_around_it():
    line = "".join(f'{{"id":{n},"name":"n{n}"}},' for n in range(30_000))
    shelf = await shelf_with(f"short\n{line}\nlast")
    answer = await shelf.ask(pattern='"id":2500\\d,')
    assert '"id":25000,' in answer
    assert f"of {len(line):,} characters" in answer
    more = await shelf.ask(pattern='"id":2500\\d,', line_range=2, characters={"start": 1, "end": len(line)})
    assert [f'"id":2500{digit},' in more for digit in range(10)] == [True] * 10
    positions = [int(position.replace(",", "")) for position in re.findall(r"^character ([\d,]+)>", more, re.MULTILINE)]
    assert all(line[position - 1 :].startswith('"id":2500') for position in positions)


async def test_matches_in_a_giant_line_are_paged():
    line = "".join(f"[{n:05}]" for n in range(9_000))
    shelf = await shelf_with(line)
    found: list[str] = []
    arguments: dict[str, Any] | None = {"characters": {"start": 1}}
    while arguments is not None:
        answer = await shelf.ask(pattern=r"\[\d\d\d00\]", **arguments)
        found += re.findall(r"^character ([\d,]+)>", answer, re.MULTILINE)
        arguments = go_on(answer)
    assert found == [f"{n * 7 + 1:,}" for n in range(0, 9_000, 100)]


async def test_a_match_too_large_for_an_answer_is_shown_in_part_and_not_again_and_again():
    shelf = await shelf_with("0123456789abcdef" * 8_000, answer_tokens=300)
    start, seen = 1, 0
    while start is not None:
        answer = await retrieved(
            shelf.offloader, shelf.talk, shelf.reference, pattern="(?s)a.{900}b", characters={"start": start}
        )
        assert estimate_text(answer.text) <= 300
        assert answer.text.startswith("character ") or "0 matches" in answer.text
        following = go_on(answer.text)
        assert following is None or following["characters"]["start"] > start
        start, seen = following["characters"]["start"] if following and seen < 5 else None, seen + 1


async def test_a_line_too_long_for_a_costly_pattern_is_searched_in_parts():
    shelf = await shelf_with("X" + "ab" * 4_000_000)
    costly = r"^X.*(?:a.{200}b|b.{300}a)[ab]{50}c"
    answer = await shelf.ask(pattern=costly)
    assert answer.startswith("[line 1 is too long to be searched for this pattern at once")
    window = json.loads(re.search(r"characters=(\{.*?\})", answer)[1])
    assert "0 matches in characters 1–" in await shelf.ask(pattern=costly, line_range=1, characters=window)


@pytest.mark.parametrize("line", [2, -2, {"start": 1, "end": 2}])
async def test_after_a_giant_line_the_lines_behind_it_are_named(line):
    shelf = await shelf_with("short\n" + "word " * 20_000 + "\nlast")
    answer = await shelf.ask(line_range=line, characters={"start": 10, "end": 500})
    assert answer.endswith('; for the lines after it, with line_range={"start": 3, "end": 3}]')
    assert await shelf.ask(line_range={"start": 3, "end": 3}) == "3: last\n[lines 3–3 of 3]"


async def test_a_match_at_the_end_of_a_giant_line_names_no_further_ones():
    shelf = await shelf_with("x" * 200_000 + "NEEDLE")
    answer = await shelf.ask(pattern="NEEDLE")
    assert "NEEDLE [of 200,006 characters]" in answer


async def test_surroundings_that_do_not_fit_are_spoken_of():
    shelf = await shelf_with("\n".join(f"{n} " + "word " * 60 for n in range(1_000)))
    answer = await shelf.ask(pattern="^500 ", context_lines=50)
    assert "501> 500 word" in answer
    assert "with 0 lines around each, as more do not fit" in answer


async def test_the_length_of_a_line_is_true_whatever_bytes_it_holds():
    storage = InMemoryStorage()
    offloader, talk = ContextOffloader(storage), conversation()
    reference = await storage.store("odd", b"\xff" * 3_000 + b"needle" + b"\xfe\xc3" * 3_000)
    answer = (await retrieved(offloader, talk, reference, pattern="needle")).text
    assert "of 9,006 characters" in answer
    arguments = go_on(answer.rpartition("\n")[0].replace("; for", "]\n; for"))
    assert arguments is not None
    assert not (await retrieved(offloader, talk, reference, pattern="x", **arguments)).is_error


async def test_a_window_does_not_begin_a_line_where_there_is_none():
    shelf = await shelf_with("abc" * 10_000)
    nothing = await shelf.ask(pattern="^abc", characters={"start": 4, "end": 100})
    assert nothing.startswith("[0 matches in characters 4–100")
    assert "character 1> abc" in await shelf.ask(pattern="^abc", characters={"start": 1, "end": 100})


# JSON and tables


ROWS = [{"id": n, "name": f"name {n}", "tags": ["a", "b"], "price": n * 1.5} for n in range(2_000)]


async def test_a_json_path_selects():
    shelf = await shelf_with(converse_result({"json": {"meta": {"count": 2_000}, "rows": ROWS}}))
    assert "2000\n[match 1 of 1]" in await shelf.ask(json_path="$.meta.count")
    answer = await shelf.ask(json_path="$.rows[?@.price > 2990 && @.price < 2996].name")
    assert re.findall(r"name \d+", answer) == ["name 1994", "name 1995", "name 1996", "name 1997"]


async def test_many_matches_of_a_path_are_paged():
    shelf = await shelf_with(converse_result({"json": ROWS}))
    found: list[str] = []
    arguments: dict[str, Any] | None = {}
    while arguments is not None:
        answer = await shelf.ask(json_path="$[*].name", **arguments)
        found += re.findall(r'"(name \d+)"', answer)
        arguments = go_on(answer)
    assert found == [row["name"] for row in ROWS]


async def test_a_value_too_large_for_an_answer_is_outlined():
    shelf = await shelf_with(converse_result({"json": {"rows": ROWS}}))
    answer = await shelf.ask(json_path="$.rows")
    assert "too large for one answer" in answer
    assert "price" in answer


async def test_a_text_too_large_for_an_answer_is_begun():
    shelf = await shelf_with(converse_result({"json": {"log": LOG, "exit": 0}}))
    answer = await shelf.ask(json_path="$.log")
    assert f"is a text of {len(LOG):,} characters" in answer
    assert LOG[:1_000] in answer


async def test_a_path_that_leads_nowhere_says_how_far_it_came():
    shelf = await shelf_with(converse_result({"json": {"rows": ROWS}}))
    answer = await shelf.ask(json_path="$.rows[0].nmae")
    assert "name" in answer
    assert "Nothing is selected" in answer


async def test_a_path_in_what_is_no_json_is_refused():
    shelf = await shelf_with(LOG)
    assert "json_path needs JSON" in await shelf.refusal(json_path="$.a")
    assert "^" in await (await shelf_with(json.dumps(ROWS))).refusal(json_path="$.a[")


async def test_a_path_in_json_lines_begins_with_the_list_of_them():
    shelf = await shelf_with("\n".join(map(json.dumps, ROWS)))
    assert '"name 5"' in await shelf.ask(json_path="$[5].name")


async def test_columns_and_rows_of_a_table():
    shelf = await shelf_with("id,name,price\n" + "\n".join(f"{r['id']},{r['name']},{r['price']}" for r in ROWS))
    answer = await shelf.ask(columns=["name", "price"], where="price >= 2995 and name != 'name 1998'")
    lines = answer.split("\n")
    assert lines[0] == "line,name,price"
    assert lines[1:-1] == ["1999,name 1997,2995.5", "2001,name 1999,2998.5"]
    assert await shelf.ask(line_range={"start": 1_999, "end": 1_999}) == (
        "1999: 1997,name 1997,2995.5\n[lines 1,999–1,999 of 2,001]"
    )
    assert "price" in await shelf.refusal(columns=["prise"])


async def test_rows_are_paged():
    shelf = await shelf_with("\n".join(map(json.dumps, ROWS)))
    found: list[str] = []
    arguments: dict[str, Any] | None = {}
    while arguments is not None:
        answer = await shelf.ask(columns=["name"], **arguments)
        found += re.findall(r"name \d+", answer)
        arguments = go_on(answer)
    assert found == [row["name"] for row in ROWS]


async def test_a_table_of_many_columns_shows_as_many_as_fit():
    columns = [f"column_number_{n}" for n in range(1_500)]
    rows = [",".join(str(n * m % 7) for n in range(1_500)) for m in range(50)]
    shelf = await shelf_with("\n".join([",".join(columns), *rows]))
    answer = await shelf.ask(where="column_number_1 == 1")
    assert "of 1,500; name those to see with columns=[…]" in answer
    assert answer.startswith("line,column_number_0,column_number_1,")


async def test_names_that_are_huge_do_not_fill_an_answer():
    shelf = await shelf_with(json.dumps({"k" * 1_000_000: 1, "b": list(range(2_000))}))
    assert estimate_text(await shelf.ask(json_path="$.*")) <= BUDGET
    wide = ",".join(f"col{n}" for n in range(20_000)) + "\n" + (",".join("1" * 20_000) + "\n") * 2
    assert (await (await shelf_with(wide)).ask(where="col1 == 1")).count("\n1,1") >= 0


async def test_rows_that_hold_no_number_are_neither_more_nor_less_than_one():
    prices = ["-", "N/A", '"1,234"', "5", "$3", "12"]
    table = "id,price,note\n" + "".join(f"{n},{price},some words of a note\n" for n, price in enumerate(prices * 200))
    shelf = await shelf_with(table)
    assert set(re.findall(r"^\d+,\d+,([^,]+),", await shelf.ask(where="price < 10"), re.MULTILINE)) == {"5"}
    assert set(re.findall(r"^\d+,\d+,([^,]+),", await shelf.ask(where="price > 10"), re.MULTILINE)) == {"12"}


async def test_a_row_too_large_for_an_answer_is_cut_and_says_where_it_is():
    shelf = await shelf_with("id,text\n" + "\n".join(f"{n},{'word ' * 4_000}{n}" for n in range(5)))
    answer = await shelf.ask(columns=["text"], where="id == 3")
    assert answer.split("\n")[1].startswith("5,word word")
    assert 'The row is cut; see all of it from line_range={"start": 5} on' in answer


# Images and documents


async def test_images_and_documents_come_back_as_such():
    offloader, talk = ContextOffloader(threshold=200, preview_tokens=50), conversation()
    image = {"image": {"format": "jpeg", "source": {"bytes": PNG}}}
    document = {"document": {"format": "pdf", "name": "a report", "source": {"bytes": b"%PDF-1.7 /Type /Page "}}}
    await offloaded(offloader, converse_result(image, document), talk)
    [first, second] = [await retrieved(offloader, talk, reference) for reference in references_of(offloader)]
    assert first.media == (Image("image/jpeg", PNG),)
    assert isinstance(second.media[0], Document)
    assert second.media[0].data == b"%PDF-1.7 /Type /Page "
    assert second.blocks[1] is second.media[0]


async def test_an_image_in_base64_is_stored_as_bytes():
    offloader, talk = ContextOffloader(threshold=200, preview_tokens=50), conversation()
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "image", "source": source}]}
    await offloaded(offloader, result, talk)
    assert (await offloader.storage.retrieve(references_of(offloader)[0])) == (PNG, "image/png")


async def test_a_document_of_many_pages_does_not_come_back_at_once():
    offloader, talk = ContextOffloader(), conversation()
    pages = b"%PDF-1.7 " + b"/Type /Page " * 100
    await offloaded(offloader, converse_result({"document": {"format": "pdf", "source": {"bytes": pages}}}), talk)
    answer = await retrieved(offloader, talk, references_of(offloader)[0])
    assert answer.is_error
    assert "about 200,000 tokens" in answer.text


async def test_lines_of_an_image_are_refused():
    offloader, talk = ContextOffloader(threshold=200, preview_tokens=50), conversation()
    await offloaded(offloader, converse_result({"image": {"format": "png", "source": {"bytes": PNG}}}), talk)
    answer = await retrieved(offloader, talk, references_of(offloader)[0], pattern="x")
    assert answer.is_error
    assert "image/png has no lines" in answer.text


# References and storages


async def test_a_reference_that_leads_nowhere_brings_up_the_closest_ones():
    shelf = await shelf_with(LOG)
    answer = await retrieved(shelf.offloader, shelf.talk, shelf.reference[:-1] + "7")
    assert answer.is_error
    assert f"{shelf.reference} (from read_log)" in answer.text


async def test_a_reference_may_stand_in_quotes_and_brackets():
    shelf = await shelf_with(LOG)
    answer = await retrieved(shelf.offloader, shelf.talk, f' "[{shelf.reference}]" ', line_range=1)
    assert not answer.is_error


async def test_evicted_unknown_and_foreign_references_are_told_apart(tmp_path):
    offloader, talk = ContextOffloader(FileStorage(tmp_path)), conversation()
    nothing = await retrieved(offloader, talk, "no-such-thing")
    assert "Nothing of this conversation is offloaded now" in nothing.text
    outside = await retrieved(offloader, talk, "/etc/passwd")
    assert "outside" in outside.text
    evicting, other = ContextOffloader(InMemoryStorage(evict_after_turns=1)), conversation()
    await offloaded(evicting, LOG, other)
    [reference] = references_of(evicting)
    await turns(evicting, other, 3)
    assert "is gone: " in (await retrieved(evicting, other, reference)).text


@pytest.mark.parametrize(
    "reference", ["", " ", "../../etc/passwd", "mem_1_x\0", "x" * 100_000, "\ud800", "s3://a/b", 5, None, [], {}]
)
async def test_any_reference_is_answered(reference, tmp_path):
    for storage in (InMemoryStorage(), FileStorage(tmp_path)):
        answer = await retrieved(ContextOffloader(storage), conversation(), reference)
        assert answer.is_error
        assert len(answer.text) < 1_000


async def test_a_storage_that_fails_is_told_to_the_model():
    class Broken(InMemoryStorage):
        async def retrieve(self, reference):
            raise RuntimeError("wires cut")

    shelf = await shelf_with(LOG, storage=Broken())
    assert "the storage failed: RuntimeError('wires cut')" in await shelf.refusal()
    flaky = await shelf_with(LOG, storage=FlakyStorage(InMemoryStorage(), [2]))
    assert "injected fault" in await flaky.refusal()


@pytest.mark.parametrize(
    "rubbish", [None, "text", ("text", "text/plain"), (b"", None), (memoryview(b""), "text/plain")]
)
async def test_a_storage_that_returns_rubbish_is_told_to_the_model(rubbish):
    class Careless(InMemoryStorage):
        async def retrieve(self, reference):
            return rubbish

    shelf = await shelf_with(LOG, storage=Careless())
    assert "instead of bytes and their type" in await shelf.refusal()


async def test_a_storage_that_returns_too_little_is_told_to_the_model():
    class Short(InMemoryStorage):
        async def retrieve_range(self, reference, start, end):
            return await super().retrieve_range(reference, start, max(start, end - 7))

    shelf = await shelf_with(LOG, storage=Short())
    await shelf.ask(line_range=1)
    assert "did not return the" in await shelf.refusal(line_range=1)


async def test_a_storage_that_does_not_answer_is_not_waited_for():
    storage = SlowStorage(InMemoryStorage(), 0.0)
    shelf = await shelf_with(LOG, storage=storage, store_timeout=0.2)
    storage._seconds = 60.0
    assert "did not answer within 0.2 seconds" in await shelf.refusal()


async def test_what_was_evicted_is_not_served_from_what_is_remembered():
    shelf = await shelf_with(LOG)
    await shelf.ask(line_range=1)
    await shelf.offloader.storage.delete(shelf.reference)
    answer = await retrieved(shelf.offloader, shelf.talk, shelf.reference, line_range=1)
    assert answer.is_error


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lines": 5}, "unknown argument 'lines'; allowed are reference, pattern"),
        ({"pattern": 5}, "pattern must be text"),
        ({"pattern": "a", "json_path": "$"}, "give only one of pattern and json_path"),
        ({"json_path": "$", "line_range": 5}, "line_range and characters do not go with json_path"),
        ({"pattern": "a", "context_lines": -1}, "context_lines must be from 0 to 100"),
        ({"pattern": "a", "context_lines": "many"}, "context_lines must be a whole number"),
        ({"pattern": "a", "plain_text": "maybe"}, "plain_text must be true or false"),
        ({"json_path": "$", "offset": -1}, "offset must be 0 or more"),
        ({"pattern": "a", "offset": 5}, "offset goes with json_path"),
        ({"columns": 5}, "columns must be a list of columns' names"),
    ],
)
async def test_arguments_that_make_no_sense_are_explained(arguments, message):
    shelf = await shelf_with(LOG)
    assert message in await shelf.refusal(**arguments)


async def test_arguments_left_empty_are_as_good_as_left_out():
    shelf = await shelf_with(LOG)
    unused = {"pattern": "", "json_path": None, "where": "", "plain_text": False, "offset": 0}
    assert await shelf.ask(**unused) == await shelf.ask()


async def test_each_look_is_told():
    events: list[object] = []
    shelf = await shelf_with(LOG, on_event=events.append)
    await shelf.ask(pattern="took 5 ms")
    told = events[-1]
    assert isinstance(told, Retrieved)
    assert (told.reference, told.arguments, told.found) == (shelf.reference, ("reference", "pattern"), True)
    assert 0 < told.tokens <= BUDGET
