"""A search finds what there is, whatever else cannot be read, and says what it left out."""

from __future__ import annotations

import asyncio
import copy
import json
import re
from typing import Any

import pytest
from test_archive import WINDOW, Loop

from holdfast import ContextManager, InMemoryStorage
from holdfast.batches import BATCH_TYPE, Batch, Entry
from holdfast.errors import DamagedContentError, InvalidValueError, StorageAccessError
from holdfast.hooks import AfterToolCall, BeforeModelCall
from holdfast.ledger import ReductionRecord
from holdfast.retrieval import RetrievalFailed, Retrieved, Searched, SearchFailed
from holdfast.testing.fakes import SlowStorage


class Refusing(InMemoryStorage):
    """Memory that does not give some contents, and counts how many it gives at the same time."""

    def __init__(self) -> None:
        super().__init__(evict_after_turns=None)
        self.refused: set[str] = set()
        self.asked: list[str] = []
        self.under_way_then: list[int] = []
        self.under_way = 0

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        self.asked.append(reference)
        self.under_way += 1
        self.under_way_then.append(self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if reference in self.refused:
            raise OSError("disk gone")
        return await super().retrieve(reference)


def batches_of(loop: Loop) -> list[str]:
    return [record.references[0] for record in loop.manager.ledger.of(ReductionRecord)]


async def archived(turns: int = 40) -> tuple[Loop, Refusing]:
    """A conversation of which much left, with nothing indexed, as after a restart."""
    storage = Refusing()
    loop = Loop(offload_storage=storage)
    await loop.go_on(turns)
    await loop.manager.aclose()
    return loop, storage


async def asked(loop: Loop, **arguments: Any) -> str:
    """What the agent is told of a search."""
    tool = next(tool for tool in loop.manager.agent_tools if tool.name == "search_context")
    answer = await tool.run(loop.conversation, arguments)
    return answer.text


async def store_batch(loop: Loop, *wires: Any, dialect: str = "converse", content: bytes | None = None) -> str:
    """Store what somebody else may have written as a batch, and let the conversation know of it."""
    entries = tuple(Entry(wire, number, turn=1) for number, wire in enumerate(wires, start=900))
    written = Batch(dialect=dialect, entries=entries, removals=()).written() if content is None else content
    reference = await loop.manager.hold.storage.store("history", written, BATCH_TYPE)
    loop.manager.hold.known.add(reference, "history")
    return str(reference)


async def test_one_content_that_cannot_be_read_does_not_stop_the_search(caplog):
    loop, storage = await archived()
    storage.refused = {batches_of(loop)[0]}
    said = await asked(loop, query="word20")
    assert "word20 lorem" in said
    assert "1 content could not be read just now" in said
    assert (await loop.manager.search_context("word20")).uncovered == 1
    [logged] = caplog.messages
    assert "disk gone" in logged


async def test_what_a_search_cannot_cover_is_in_the_ledger_once():
    loop, storage = await archived()
    storage.refused = {batches_of(loop)[0]}
    damaged = await store_batch(loop, {}, content=b"no batch")
    for _ in range(3):
        await loop.manager.search_context("word20")
    unread, broken = sorted(loop.manager.ledger.of("failure"), key=lambda record: record.error_type, reverse=True)
    assert (unread.error_type, broken.error_type) == ("StorageAccessError", "DamagedContentError")
    assert unread.what == f"{batches_of(loop)[0]} cannot be searched as a whole"
    assert broken.what == f"{damaged} cannot be searched as a whole"


async def test_opening_what_is_damaged_is_a_failure_in_the_ledger():
    loop, _ = await archived()
    damaged = await store_batch(loop, {}, content=b"\xff no batch")
    retrieve = loop.manager.agent_tools[0]
    answer = await retrieve.run(loop.conversation, {"reference": damaged})
    assert answer.text.startswith("this is no batch of messages, or it is damaged: ")
    assert loop.manager.ledger.last("failure").error_type == "DamagedContentError"
    with pytest.raises(DamagedContentError):
        await loop.manager.retrieve(damaged)


@pytest.mark.parametrize("compression", ["truncate", "summarize"])
async def test_what_somebody_adds_to_a_marker_is_found_when_the_marker_is_replaced(compression):
    loop = Loop(compression=compression)
    await loop.go_on(30)
    loop.marker["content"].append({"text": "The hint is zebrafish."})
    await loop.go_on(40)
    assert "zebrafish" not in json.dumps(loop.messages)
    [hit] = (await loop.manager.search_context("zebrafish")).hits
    assert await loop.manager.retrieve(hit.reference) == (b"The hint is zebrafish.", "text/plain")


async def test_what_is_left_of_a_shortened_message_is_found_once_the_whole_is_gone():
    loop = Loop(window=8_000, compression={"low_water": 0.55})
    await loop.turn([{"text": "headword " + "dolor sit amet " * 1_000}])
    await loop.go_on(60)
    [whole] = (await loop.manager.search_context("headword")).hits
    await loop.manager.hold.storage.delete(whole.labels["batch"])
    [left] = (await loop.manager.search_context("headword")).hits
    assert left.labels["batch"] != whole.labels["batch"]
    content, _ = await loop.manager.retrieve(left.reference)
    assert b"\nheadword dolor" in content


async def test_a_storage_that_cannot_say_what_it_has_is_searched_all_the_same(monkeypatch):
    loop, storage = await archived()

    async def inspect(reference: str) -> Any:
        raise OSError("403 on HeadObject")

    monkeypatch.setattr(storage, "inspect", inspect)
    assert (await loop.manager.search_context("word1")).hits


async def test_what_could_not_be_read_is_read_at_the_next_search():
    loop, storage = await archived()
    storage.refused = {batches_of(loop)[0]}
    assert "word1 lorem" not in await asked(loop, query="word1")
    storage.refused = set()
    said = await asked(loop, query="word1")
    assert "word1 lorem" in said
    assert "could not be read" not in said


async def test_a_storage_that_gives_nothing_at_all_fails_the_search_and_is_told():
    loop, storage = await archived()
    events: list[Any] = []
    loop.manager.hold.listen(events.append)
    storage.refused = set(loop.manager.hold.known)
    assert "disk gone" in await asked(loop, query="word1")
    with pytest.raises(StorageAccessError, match="disk gone"):
        await loop.manager.search_context("word1")
    assert [event.query for event in events if isinstance(event, SearchFailed)] == ["word1", "word1"]
    assert isinstance(events[0].error, StorageAccessError)


async def test_a_storage_that_never_answers_is_not_asked_for_everything(monkeypatch):
    monkeypatch.setattr("holdfast.retrieval.indexing._SECONDS_IN_VAIN", 0.3)
    inner = InMemoryStorage(evict_after_turns=None)
    loop = Loop(offload_storage=SlowStorage(inner, 60.0), offloader={"store_timeout": 0.2})
    for number in range(2_000):
        loop.manager.hold.known.add(await inner.store(f"{number}", b"walrus"), "tool")
    with pytest.raises(StorageAccessError, match="did not answer"):
        await asyncio.wait_for(loop.manager.search_context("walrus"), 20)


@pytest.mark.parametrize(
    "wire",
    [
        {"role": "user", "content": [{"text": {"$bytes": "!!"}}]},
        {"$pairs": [[{"$pairs": []}, 1]]},
        {"$pairs": [[[1], 2]]},
    ],
)
async def test_a_damaged_message_hides_no_other(wire, caplog):
    loop, storage = await archived()
    fine = {"role": "user", "content": [{"text": "the walrus is fine"}]}
    damaged = await store_batch(loop, wire, fine)
    said = await asked(loop, query="walrus")
    assert "the walrus is fine" in said
    assert "1 content is damaged" in said
    assert (await loop.manager.search_context("word1")).uncovered == 1
    assert sum(damaged in message for message in caplog.messages) == 1
    assert storage.asked.count(damaged) == 1


@pytest.mark.parametrize("batch", [{"dialect": "klingon"}, {"content": b'{"holdfast_batch": 1, "dia'}])
async def test_a_batch_that_cannot_be_read_is_not_covered(batch):
    loop, _ = await archived()
    await store_batch(loop, {}, **batch)
    answer = await loop.manager.search_context("word1")
    assert answer.hits
    assert answer.uncovered == 1


async def test_a_text_document_that_is_no_utf_8_is_found_and_opened():
    loop = Loop()
    document = {"document": {"name": "notes", "format": "txt", "source": {"bytes": b"walrus \xff\xfe notes"}}}
    await loop.turn([document])
    await loop.go_on(40)
    hit = (await loop.manager.search_context("walrus")).hits[0]
    content, _ = await loop.manager.retrieve(hit.reference)
    assert content == b"walrus \xff\xfe notes"
    transcript, _ = await loop.manager.retrieve(batches_of(loop)[-1])
    assert "walrus" in transcript.decode()


async def test_hits_of_what_is_gone_make_room_for_others():
    loop, storage = await archived(80)
    query = "lorem ipsum file"
    for gone in {hit.reference.split("#")[0] for hit in (await loop.manager.search_context(query, 5)).hits}:
        await storage.delete(gone)
    answer = await loop.manager.search_context(query, 5)
    assert len(answer.hits) == 5
    assert answer.gone > 0
    assert (await loop.manager.search_context(query, 5)).gone == 0


async def test_a_missing_word_is_not_echoed_at_length():
    loop, _ = await archived()
    said = await asked(loop, query=f"word1 walrus {'b' * 60_000}")
    assert f"found nowhere: walrus, {'b' * 59}…;" in said


async def test_after_a_restart_contents_are_read_some_at_a_time_and_in_their_order():
    loop, storage = await archived(200)
    state = json.loads(json.dumps(loop.manager.get_state()))
    storage.asked, storage.under_way_then = [], []
    again = ContextManager(compression=True, dialect="converse", window=WINDOW, offload_storage=storage)
    again.restore(state)
    again.converse(copy.deepcopy(loop.messages))
    assert (await again.search_context("word1", 1)).hits[0].excerpt[0].text.startswith("word1 ")
    assert max(storage.under_way_then) == 8
    assert len(storage.asked) == len(set(storage.asked))
    covered = [reference.split("#")[0] for reference in again.hold.retrieval._indexing._index.references]
    assert list(dict.fromkeys(covered)) == batches_of(loop)


async def test_few_large_contents_are_read_at_the_same_time(monkeypatch):
    monkeypatch.setattr("holdfast.retrieval.indexing._BYTES_AT_ONCE", 3_500)
    storage = Refusing()
    loop = Loop(offload_storage=storage)
    for number in range(20):
        loop.manager.hold.known.add(await storage.store(f"{number}", b"walrus " * 150), "tool")
    await loop.manager.search_context("walrus")
    assert max(storage.under_way_then[:8]) == 8
    assert max(storage.under_way_then[8:]) == 3


async def test_a_summary_from_before_there_was_an_archive_is_found_and_shown():
    note = {"custom": {"holdfast": "summary"}}
    summary = {"role": "user", "content": [{"text": "<summary>\nThe walrus sleeps.\n</summary>"}], "metadata": note}
    loop = Loop([{"role": "user", "content": [{"text": "Fix the bug."}]}, summary])
    await loop.go_on(40)
    hit = (await loop.manager.search_context("walrus")).hits[0]
    assert hit.reference.endswith("#s1")
    assert (await loop.manager.retrieve(hit.reference))[0].decode() == summary["content"][0]["text"]
    assert "(an earlier summary or marker), lines 1–3:" in await asked(loop, query="walrus")
    transcript = (await loop.manager.retrieve(batches_of(loop)[-1]))[0].decode()
    assert f"[an earlier summary or marker]\n{summary['content'][0]['text']}" in transcript


async def test_a_summary_whose_messages_are_archived_is_not_found_beside_them():
    loop = Loop(compression={"method": "summarize", "summarizer": lambda request: "The walrus sleeps."})
    await loop.go_on(60)
    assert len(batches_of(loop)) > 2
    assert not (await loop.manager.search_context("walrus")).hits


@pytest.mark.parametrize("limit", ["2", " 2 ", 2.0, 2])
async def test_a_whole_number_is_taken_however_a_model_writes_it(limit):
    loop, _ = await archived()
    assert "[2 of " in await asked(loop, query="lorem", limit=limit)


@pytest.mark.parametrize("limit", ["two", 2.5, "2.5", True, 0, "51", "9" * 5000, float("nan"), float("inf"), []])
async def test_other_limits_are_told_to_the_model(limit):
    loop, _ = await archived()
    assert "limit must be a number from 1 to 50" in await asked(loop, query="lorem", limit=limit)
    with pytest.raises(InvalidValueError):
        await loop.manager.search_context("lorem", limit)


async def test_what_the_search_does_not_cover_is_said_with_what_to_do():
    loop, _ = await archived()
    loop.manager.hold.retrieval._indexing._opened()._max_bytes = 20_000
    said = await asked(loop, query="lorem")
    assert re.search(r"\d+ contents are not covered .*; open a reference that you know with a pattern", said)


async def test_references_are_told_for_what_they_are():
    loop = Loop()
    await loop.go_on(40)
    retrieve = loop.manager.agent_tools[0]
    assert "earlier messages" in retrieve.description
    said = (await retrieve.run(loop.conversation, {"reference": "no-such-thing"})).text
    assert "(earlier messages)" in said
    assert "from a tool" not in said


async def test_a_retrieval_that_the_storage_fails_is_told_and_others_take_their_time():
    loop, storage = await archived()
    events: list[Any] = []
    loop.manager.hold.listen(events.append)
    retrieve = loop.manager.agent_tools[0]
    first, second = batches_of(loop)[:2]
    storage.refused = {first}
    assert "disk gone" in (await retrieve.run(loop.conversation, {"reference": first})).text
    await retrieve.run(loop.conversation, {"reference": first, "pattern": "("})
    storage.refused = set()
    await retrieve.run(loop.conversation, {"reference": second, "json_path": "["})
    await retrieve.run(loop.conversation, {"reference": second})
    await retrieve.run(loop.conversation, {"reference": "no-such-thing"})
    await loop.manager.search_context("word1")
    failed, *others = [event for event in events if not isinstance(event, RetrievalFailed) or event.reference == first]
    assert isinstance(failed, RetrievalFailed)
    assert isinstance(failed.error, StorageAccessError)
    told = [event for event in others if isinstance(event, Retrieved | Searched)]
    assert [type(event) for event in told] == [Retrieved, Retrieved, Searched]
    assert all(event.seconds > 0 for event in told)


async def test_an_answer_shows_as_much_of_each_passage_as_fits():
    loop = Loop(window=20_000)
    lines = "\n".join(f"{number} {'dolor' if number % 7 else 'walrus'} sit amet consectetur" for number in range(30))
    await loop.turn([{"text": lines}])
    await loop.go_on(150)
    few = await asked(loop, query="walrus", limit=1)
    assert len(few) > 900
    many = await asked(loop, query="lorem ipsum", limit=50)
    assert loop.manager.hold.estimator.text(many) <= 2_500


async def test_passages_of_other_messages_come_before_more_of_the_same():
    loop = Loop(window=20_000)
    place = "the walrus sleeps\n" + "\n".join("dolor sit amet " * 8 for _ in range(20)) + "\n"
    await loop.turn([{"text": place * 3}])
    await loop.turn([{"text": "a walrus, once"}])
    await loop.go_on(150)
    references = [hit.reference for hit in (await loop.manager.search_context("walrus", 8)).hits]
    assert len(references) > len(set(references)) > 1
    assert len(set(references[: len(set(references))])) == len(set(references))


async def test_an_answer_names_what_stands_near_and_is_not_shown():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    for number in range(30):
        loop.messages.append(
            {"role": "user", "content": f"The wharf {number} is run by harbour_master_{number}. " * 20}
        )
        await loop.go_on(1)
    text = await asked(loop, query="wharf", limit=1)
    passage, named = text.split("\nnames near these words", 1)
    names = set(re.findall(r"harbour_master_[0-9]+", named))
    assert len(names) > 5
    assert not names & set(re.findall(r"harbour_master_[0-9]+", passage))


async def test_names_that_are_in_view_take_no_room_in_an_answer():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    for number in range(30):
        loop.messages.append({"role": "user", "content": f"The wharf {number} has harbour_master_{number}. " * 20})
        await loop.go_on(1)
    assert "harbour_master_3," in (await asked(loop, query="wharf", limit=1)).split("names near")[1]
    call = {"toolUse": {"toolUseId": "c", "name": "call", "input": {"whom": ["harbour_master_3"]}}}
    loop.messages.append({"role": "assistant", "content": [call]})
    assert "harbour_master_3," not in (await asked(loop, query="wharf", limit=1)).split("names near")[1]


async def test_names_leave_most_of_a_small_answer_to_the_passages():
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None))
    for number in range(30):
        loop.messages.append(
            {"role": "user", "content": f"The wharf {number} is run by harbour_master_{number}. " * 20}
        )
        await loop.go_on(1)
    text = await asked(loop, query="wharf", limit=8)
    passages, named = text.split("\nnames near these words", 1)
    assert len(passages) > len(named)


async def test_a_search_is_recorded_under_the_name_of_its_tool():
    manager = ContextManager(offloader=True, dialect="openai")
    conversation = manager.converse([])
    await conversation.call_tool("search_offloaded_content", "c1", {"query": "anything"}, lambda name, given: "")
    record = manager.ledger.last("search")
    assert (record.tool, record.what) == ("search_offloaded_content", "nothing found")


async def test_names_that_a_tool_made_up_neither_hide_the_archive_nor_cost_more_than_some_reads():
    storage = Refusing()
    loop = Loop(window=20_000, offload_storage=storage)
    await loop.turn([{"text": "the secret is zebra4411 " + "x y z " * 50}])
    await loop.go_on(150)
    await loop.manager.search_context("zebra4411")
    for block in range(40):
        await loop.turn([{"text": "".join(f"[Offloaded as q{block}-{number} : " for number in range(300))}])
    storage.asked.clear()
    assert (await loop.manager.search_context("zebra4411")).hits
    assert len(storage.asked) <= 300
    for _ in range(12):
        await loop.manager.search_context("zebra4411")
    storage.asked.clear()
    assert (await loop.manager.search_context("zebra4411")).uncovered == 0
    assert not [reference for reference in storage.asked if reference.startswith("q")]


async def test_a_batch_that_only_a_text_names_is_not_taken_for_this_conversation():
    storage = InMemoryStorage(evict_after_turns=None)
    loop = Loop(offload_storage=storage)
    wire = {"role": "user", "content": [{"text": "a walrus of somebody else"}]}
    other = Batch(dialect="converse", entries=(Entry(wire, 3),), removals=()).written()
    reference = await storage.store("other", other, BATCH_TYPE)
    await loop.turn([{"text": f"[Offloaded as {reference} : text/plain"}])
    await loop.turn()
    for _ in range(2):
        assert not (await loop.manager.search_context("walrus")).hits


async def test_every_hit_says_what_it_is_and_of_which_turn_also_after_a_restart():
    storage = InMemoryStorage(evict_after_turns=None)
    options: dict[str, Any] = {"window": 30_000, "offload_storage": storage, "offloader": True}
    loop = Loop(**options)
    await loop.go_on(3)
    result = {"toolUseId": "t9", "status": "success", "content": [{"text": "walrus " + "lorem ipsum " * 5_000}]}
    await loop.hooks.invoke(event := AfterToolCall(loop.conversation, "read_file", "t9", result))
    loop.messages.append({"role": "user", "content": [{"toolResult": event.result}]})
    await loop.go_on(1)
    state = json.loads(json.dumps(loop.manager.get_state()))
    after = Loop(list(loop.messages), **options)
    after.manager.restore(state)
    for manager in (loop.manager, after.manager):
        [hit, *_] = (await manager.search_context("walrus")).hits
        assert dict(hit.labels) == {"what": "from read_file", "role": "tool", "tool": "read_file", "turn": "3"}


async def test_a_turn_that_nobody_knows_is_left_out():
    loop = Loop()
    loop.manager.hold.known.add(await loop.manager.hold.storage.store("a", b"walrus"), "look")
    [hit] = (await loop.manager.search_context("walrus")).hits
    assert dict(hit.labels) == {"what": "from look", "role": "tool", "tool": "look"}


async def test_a_search_in_another_event_loop_goes_on_beside_the_agent_that_indexes():
    loop = Loop(window=200_000, offload_storage=InMemoryStorage(evict_after_turns=None))
    for number in range(1_200):
        await loop.turn([{"text": f"zebra{number} " + " ".join(f"name_{number}_{part}" for part in range(60))}])
    await loop.hooks.invoke(BeforeModelCall(loop.conversation))

    def searched() -> int:
        return len(asyncio.run(loop.manager.search_context("zebra3")).hits)

    found = await asyncio.wait_for(asyncio.gather(*(asyncio.to_thread(searched) for _ in range(4))), 60)
    assert all(found)
    assert (await loop.manager.search_context("zebra3")).uncovered == 0


class Asking:
    """An agent that reads tickets, and looks the same one up again and again."""

    def __init__(self) -> None:
        self.manager = ContextManager("auto", dialect="openai", window=8_000)
        self.messages: list[Any] = [{"role": "user", "content": "task"}]
        self.conversation = self.manager.converse(self.messages)

    async def call(self, name: str, arguments: dict[str, Any], result: str = "") -> None:
        call = {"id": f"t{len(self.messages)}", "type": "function"}
        call["function"] = {"name": name, "arguments": json.dumps(arguments)}
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        self.messages.append(await self.conversation.call_tool(name, call["id"], arguments, lambda *_: result))
        await self.conversation.call_model(lambda sent: {})

    async def read(self, text: str, times: int) -> None:
        for number in range(times):
            await self.call("read", {"n": number}, f"{text.format(number)} " + "lorem ipsum dolor " * 60)


async def test_what_was_searched_for_before_is_found_before_the_answers_of_then():
    agent = Asking()
    await agent.read("the invoice NEEDLE-{} was paid", 30)
    for _ in range(6):
        await agent.call("search_context", {"query": "NEEDLE-3 invoice paid"})
        await agent.read("something else, {}", 12)
    first, *others = (await agent.manager.search_context("NEEDLE-3", 50)).hits
    assert (first.labels["tool"], first.labels["role"], first.labels["message"]) == ("read", "tool", "9")
    tools = [hit.labels.get("tool") for hit in others]
    assert "search_context" in tools
    assert "read" not in tools[tools.index("search_context") :]


async def test_what_only_a_search_was_asked_for_is_found_too():
    agent = Asking()
    await agent.read("ticket {}", 5)
    await agent.call("search_context", {"query": "xylophone"})
    await agent.read("something else, {}", 30)
    [hit, *_] = (await agent.manager.search_context("xylophone")).hits
    assert hit.labels["what"].endswith(f"assistant calls search_context, turn {hit.labels['turn']}")
