"""What an agent reads when it searched: passages first, never led astray, nothing that a provider refuses."""

from __future__ import annotations

import re

from test_archive import Loop
from test_search_context import asked

from holdfast import InMemoryStorage


async def after(*texts: str) -> Loop:
    """A conversation of which these texts left."""
    loop = Loop(offload_storage=InMemoryStorage(evict_after_turns=None), window=20_000)
    for text in texts:
        await loop.turn([{"text": text}])
    await loop.go_on(100)
    return loop


async def test_what_is_nowhere_is_said_before_what_is_like_it():
    loop = await after("the order ORD-4412 was paid", "the order ORD-4413 was sent back")
    first, *_ = (await asked(loop, query="ORD-4411")).splitlines()
    assert first == "[found nowhere: 4411; these passages hold other words of the query]"


async def test_what_is_nowhere_is_said_where_there_is_nothing_else():
    loop = await after("the order ORD-4412 was paid")
    said = await asked(loop, query="walrus")
    assert said.splitlines() == [
        "[Nothing matches; try other words, or a pattern with retrieve_offloaded_content; found nowhere: walrus]"
    ]


async def test_names_take_no_more_than_the_passages_do():
    names = " ".join(f"the wharf is run by harbour_master_{number}," for number in range(300))
    loop = await after(names, "the wharf 4411 burnt down")
    said = await asked(loop, query="wharf 4411", limit=1)
    passage, named = said.split("\nnames near these words")
    assert "burnt down" in passage
    assert len(re.findall("harbour_master_", named)) <= 30


async def test_names_leave_room_for_all_the_passages_that_were_asked_for():
    loop = await after(*(f"the wharf {number} is run by harbour_master_{number}. " * 30 for number in range(12)))
    said = await asked(loop, query="wharf run")
    assert len(re.findall(r"^mem_\S+ \(", said, re.MULTILINE)) == 8
    assert "did not fit" not in said


async def test_halves_of_characters_are_not_sent():
    loop = await after("the wharf \ud800 burnt down")
    said = await asked(loop, query="wharf burnt")
    assert "burnt down" in said
    said.encode()
