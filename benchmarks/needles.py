"""Facts in the real outputs of tools: does the extract show them, and do the tools find them?

Runs over the outputs below HOLDFAST_DATA, or ../shared/data, where needles.jsonl holds facts that occur once, each with
a query. All outputs are offloaded in one conversation. Prints the shares by kind and in all; the latter also belong to
the table of benchmarks/offload.py.
"""

from __future__ import annotations

import asyncio
import json
import math
import operator
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from reporting import Row
from rich.console import Console
from rich.table import Table

from holdfast import ContextOffloader, InMemoryStorage
from holdfast.hooks import AfterToolCall, BeforeModelCall, Conversation
from holdfast.tokens import estimate_text

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data") / "outputs"
PAGES, MOST_PAGES, PASSAGES = 5, 500, 5
# A passage inside a longer line is a window of it.


@dataclass(frozen=True)
class Needle:
    """A fact: *answer* occurs once in a text of some *kind*; *query* holds other words of its line."""

    kind: str
    text: str = field(repr=False)
    file: str
    answer: str
    query: str

    @property
    def rarest_word(self) -> str:
        """The word of the query that its text has least often; of equals, the longest."""
        return min(self.query.split(), key=lambda word: (self.text.count(word), -len(word)))

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.text.index(self.answer)) + 1

    @property
    def column(self) -> int:
        at = self.text.index(self.answer)
        return at - self.text.rfind("\n", 0, at)


class Outcome(NamedTuple):
    """What became of a needle: in the extract, in a head of the same size, on which page of matches, and by search.

    *tokens* are those of the first page.
    """

    needle: Needle
    extracted: bool
    in_head: bool
    pages: float
    tokens: int
    found: bool

    @property
    def marks(self) -> tuple[bool, ...]:
        """Whether the extract shows it, a head does, retrieval does on one page, a few or all, and the search does."""
        return self.extracted, self.in_head, self.pages <= 1, self.pages <= PAGES, self.pages <= MOST_PAGES, self.found


class Measured(NamedTuple):
    """What became of all needles, and how many tokens the extracts take together."""

    outcomes: list[Outcome]
    tokens: int


@cache
def texts() -> dict[str, tuple[str, str]]:
    """Kind and text by file."""
    entries = json.loads((DATA / "manifest.json").read_text(encoding="utf-8"))
    return {entry["file"]: (entry["kind"], (DATA / entry["file"]).read_bytes().decode()) for entry in entries}


def all_needles() -> Iterator[Needle]:
    for line in (DATA / "needles.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        yield Needle(*texts()[entry["file"]], entry["file"], entry["answer"], entry["query"])


# An agent that looks for them


class Agent:
    """A conversation with all outputs offloaded, and its tools."""

    def __init__(self) -> None:
        self.conversation = Conversation([])
        self.offloader = ContextOffloader(InMemoryStorage(evict_after_turns=None))
        self.tools = {tool.name: tool for tool in self.offloader.tools}
        self.references: dict[str, str] = {}
        self.shown: dict[str, str] = {}

    async def read(self, file: str, text: str) -> None:
        event = AfterToolCall(self.conversation, "read", file, {"content": [{"text": text}], "toolUseId": file})
        await self.offloader.after_tool_call(event)
        extract = event.result["content"][0]["text"]
        match = re.match(r"\[Offloaded as (\S+) ", extract)
        assert match, extract[:300]
        self.references[file], self.shown[file] = match[1], extract

    async def ask(self, tool: str, **arguments: Any) -> str:
        """Call a tool as the first of a turn, so that its answer may be as long as any."""
        await self.offloader.before_model_call(BeforeModelCall(self.conversation))
        answer = await self.tools[tool].run(self.conversation, arguments)
        assert not answer.is_error, answer.text
        return answer.text


async def outcomes() -> Measured:
    agent = Agent()
    for file, (_, text) in texts().items():
        await agent.offloader.before_model_call(BeforeModelCall(agent.conversation))
        await agent.read(file, text)
    heads = {file: head_of(text, estimate_text(agent.shown[file])) for file, (_, text) in texts().items()}
    found = [await outcome(needle, agent, heads[needle.file]) for needle in all_needles()]
    return Measured(found, sum(map(estimate_text, agent.shown.values())))


async def outcome(needle: Needle, agent: Agent, head: str) -> Outcome:
    pages, tokens = await pages_until_shown(needle, agent)
    return Outcome(
        needle,
        extracted=needle.answer in agent.shown[needle.file],
        in_head=needle.answer in head,
        pages=pages,
        tokens=tokens,
        found=await is_found(needle, agent),
    )


def head_of(text: str, tokens: int) -> str:
    """The longest beginning of *text* that takes no more than so many tokens."""
    fits, too_long = 0, len(text) + 1
    while too_long - fits > 1:
        length = min((fits + too_long) // 2, 2 * fits + 1_000)
        fits, too_long = (length, too_long) if estimate_text(text[:length]) <= tokens else (fits, length)
    return text[:fits]


# Retrieval with a pattern

GO_ON = re.compile(r"call again with ((?:\w+=(?:\{[^{}]*\}|\d+)(?:, )?)+)")
ARGUMENT = re.compile(r"(\w+)=(\{[^{}]*\}|\d+)")


async def pages_until_shown(needle: Needle, agent: Agent) -> tuple[float, int]:
    """How many pages of what matches the rarest word it takes to see the answer, and the tokens of the first."""
    asked = {"reference": agent.references[needle.file], "pattern": needle.rarest_word, "plain_text": True}
    following: dict[str, Any] | None = {}
    tokens = 0
    for number in range(1, MOST_PAGES + 1):
        page = await agent.ask("retrieve_offloaded_content", **asked, **following)
        tokens = tokens or estimate_text(page)
        if needle.answer in page:
            return number, tokens
        following = continuation(page)
        if following is None:
            break
    return math.inf, tokens


def continuation(page: str) -> dict[str, Any] | None:
    """The last arguments that a page names to go on."""
    named = GO_ON.findall(page)
    return {name: json.loads(value) for name, value in ARGUMENT.findall(named[-1])} if named else None


# Search

PASSAGE = re.compile(r"^(\S+) .*?lines? ([\d,]+)(?:–([\d,]+))?(?:, characters ([\d,]+)–([\d,]+))?:$", re.M)


async def is_found(needle: Needle, agent: Agent) -> bool:
    """Whether one of the first passages covers the answer."""
    answer = await agent.ask("search_offloaded_content", query=needle.query, limit=PASSAGES)
    places = [place for place in PASSAGE.findall(answer) if place[0] == agent.references[needle.file]]
    return any(covers(needle, *(int(number.replace(",", "") or 0) for number in numbers)) for _, *numbers in places)


def covers(needle: Needle, first: int, last: int, from_character: int, to_character: int) -> bool:
    if not to_character:
        return first <= needle.line <= max(first, last)
    end = needle.column + len(needle.answer) - 1
    return needle.line == first and from_character <= needle.column and end <= to_character


# The tables


@cache
def measured() -> Measured:
    return asyncio.run(outcomes())


def measure_needles() -> list[Row]:
    """finding facts in the outputs of tools"""
    each, tokens = measured()
    extracted, in_head, at_once, soon, at_last, found = shares(each)
    facts = f"of {len(each):,} facts in {len(texts())} outputs of tools"
    answer = mean(outcome.tokens for outcome in each)
    return [
        at_least(f"{facts}, the extract shows (a head of the same size: {in_head:.1%})", 0.27, extracted),
        at_most("… tokens of all these extracts", 91_000, tokens),
        row_of_kinds(),
        at_least(f"{facts}, one look-up with the query's rarest word shows", 0.974, at_once),
        at_most("… mean tokens of its answer", 400, round(answer)),
        at_least(f"… on the first {PAGES} pages", 0.99, soon),
        at_least("… on all pages", 0.99, at_last),
        at_least(f"{facts}, the search has among its first {PASSAGES} passages", 0.90, found),
    ]


def row_of_kinds() -> Row:
    compared = [shares(own)[:2] for kind, own in by_kind().items() if not kind.startswith("text-")]
    more, fewer = (sum(compare(*pair) for pair in compared) for compare in (operator.gt, operator.lt))
    result = f"in {more} more, in {len(compared) - more - fewer} as many, in {fewer} fewer"
    measure = f"… in the {len(compared)} structured kinds one by one, against the head"
    return Row(measure, f"in {len(compared)} more", result, more == len(compared))


def at_least(measure: str, bar: float, share: float) -> Row:
    return Row(measure, f"≥ {100 * bar:g}%", f"{share:.1%}", share >= bar)


def at_most(measure: str, bar: int, count: int) -> Row:
    return Row(measure, f"≤ {bar:,}", f"{count:,}", count <= bar)


def shares(some: Sequence[Outcome]) -> list[float]:
    """The shares of needles with each of the marks."""
    return [mean(marks) for marks in zip(*(each.marks for each in some), strict=True)]


def by_kind() -> dict[str, list[Outcome]]:
    kinds = defaultdict(list)
    for each in measured().outcomes:
        kinds[each.needle.kind].append(each)
    return dict(sorted(kinds.items()))


def tell_by_kind() -> None:
    table = Table("kind", "facts", "extract", "head", "1 page", f"{PAGES} pages", "all pages", "search")
    for kind, own in [*by_kind().items(), ("all", measured().outcomes)]:
        table.add_row(kind, str(len(own)), *(f"{share:.0%}" for share in shares(own)))
    Console().print(table)


if __name__ == "__main__":
    if not DATA.exists():
        sys.exit(f"no outputs at {DATA}: set HOLDFAST_DATA to the folder that holds outputs/")
    tell_by_kind()
    for row in measure_needles():
        print(f"{row.measure}: {row.result} (asked for: {row.bar}){'' if row.met else ', missed'}")
