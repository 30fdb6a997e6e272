"""Recorded runs of agents, the values that these used again, and where such a value stands in a request."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha1
from itertools import pairwise
from typing import Any, NamedTuple

from reporting import DATA

from holdfast.tokens.exact import exact_counter

NAMES = ("swe", "tau")
WIRE_KEYS = ("role", "content", "tool_calls", "tool_call_id")
UNCACHED, CACHED, BLOCK_TOKENS = 1.25, 0.1, 8
LINE, SHORT_LINE = 40, 12
FRESH, MOST_FRESH = 8, 3
QUERY, ANSWER = 300, 4_000
WORD = re.compile(r"[A-Za-z_][\w./:@-]{6,}\w")
TELLING = re.compile(r"[./_:@]|[a-z][A-Z]|\d")


# Runs


@dataclass(frozen=True)
class Probe:
    """A value that an agent used long after it had last seen it, the words around that use, and those around another.

    It is strict if the value was in one message only, a tool result.
    """

    value: str
    query: str
    other_query: str
    strict: bool


@dataclass(frozen=True)
class Run:
    """A recorded run in OpenAI's format, with the probes and the fresh names of each of its messages by number."""

    system: str
    messages: Sequence[Mapping[str, Any]]
    probes: Mapping[int, Sequence[Probe]]
    fresh: Mapping[int, Sequence[str]]

    @cached_property
    def original(self) -> str:
        """The text of the whole run, with a null character around each block."""
        request = request_of(self.system, (), self.messages)
        return "\0".join(["", *(text for message in request for text in message.texts), ""])

    @cached_property
    def not_by_user(self) -> frozenset[str]:
        """What the agent and its tools said."""
        messages = [message for message in self.messages if message["role"] != "user"]
        return frozenset(text for message in request_of("", (), messages)[1:] for text in message.texts)

    def in_context(self, value: str, texts: Iterable[str]) -> bool:
        """Return True if *value* stands in one of *texts* with what stood on its line in the original."""
        return any(each in self.original for text in texts if value in text for each in surroundings(value, text))

    def users_words(self, number: int, texts: Iterable[str]) -> Counter[str]:
        """Count the characters that the user has written before a message, and those that stand in *texts*."""
        others = "\0".join(text for text in texts if text not in self.not_by_user)
        written = [message["content"] for message in self.messages[:number] if message["role"] == "user"]
        kept = (text for text in written if text in others)
        return Counter({"words": sum(map(len, written)), "words kept": sum(map(len, kept))})


def surroundings(value: str, text: str) -> Iterator[str]:
    """Yield each place of *value* in *text*, with up to 40 characters of its line on each side.

    If the line has next to nothing else, with 12 characters on each side, of whatever line.
    """
    text = f"\0{text}\0"
    for match in re.finditer(re.escape(value), text):
        start, end = match.span()
        before = text[max(start - LINE, 0) : start].rpartition("\n")[2]
        after = text[end : end + LINE].partition("\n")[0]
        if len((before + after).strip(" \0")) < SHORT_LINE:
            before, after = text[max(start - SHORT_LINE, 0) : start], text[end : end + SHORT_LINE]
        yield f"{before}{value}{after}"


@cache
def recorded(name: str) -> tuple[Run, ...]:
    """Return the runs of one file, with their probes."""
    probes = defaultdict(list)
    for line in lines_of(f"{name}.probes.jsonl.gz"):
        probes[line["trace"]].append(line)
    return tuple(run_of(line, probes[line["id"]]) for line in lines_of(f"{name}.jsonl.gz"))


def lines_of(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def run_of(line: Mapping[str, Any], probe_lines: Sequence[Mapping[str, Any]]) -> Run:
    messages = [{key: message[key] for key in WIRE_KEYS if key in message} for message in line["messages"]]
    probes = defaultdict(list)
    for each in probe_lines:
        probes[each["at"]].append(probe_of(each, probe_lines))
    return Run(line["system"] or "", messages, probes, fresh_names(messages))


def probe_of(line: Mapping[str, Any], lines: Iterable[Mapping[str, Any]]) -> Probe:
    """Return a probe. The other of the run whose words it is given is always the same."""
    value = line["value"]
    others = [other for other in lines if other["value"] != value]
    pick = int(sha1(f"{line['at']} {value}".encode()).hexdigest(), 16)
    other_query = masked(others[pick % len(others)]).replace(value, "___") if others else "zq"
    return Probe(value, masked(line), other_query, line["n_evidence"] == 1 and line["origin"] == "tool")


def masked(line: Mapping[str, Any]) -> str:
    return line["query_hint"][:QUERY].replace(line["value"], "___")


def fresh_names(messages: Sequence[Mapping[str, Any]]) -> dict[int, list[str]]:
    """Return the names that a message calls tools with and that only tool results of the last 8 messages held."""
    first: dict[str, int] = {}
    fresh = {}
    for number, message in enumerate(messages):
        arguments = " ".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())
        used = [word for word in dict.fromkeys(WORD.findall(arguments)) if TELLING.search(word)]
        seen = [word for word in used if number - first.get(word, -FRESH - 1) <= FRESH]
        fresh[number] = [word for word in seen if messages[first[word]]["role"] == "tool"][:MOST_FRESH]
        for word in [*WORD.findall(message["content"] or ""), *used]:
            first.setdefault(word, number)
    return fresh


# Requests


class Message(NamedTuple):
    """What a model reads of a message, a text for each block, and its tokens."""

    texts: tuple[str, ...]
    tokens: int


Request = Sequence[Message]


def request_of(system: Any, tools: Sequence[Any], messages: Iterable[Any]) -> list[Message]:
    """Return the system prompt, the tools and the messages of a request in the format of OpenAI or Bedrock."""
    head = [{"text": system or ""}, *({"text": json.dumps(tool, ensure_ascii=False)} for tool in tools)]
    return [message_of(json.dumps(each)) for each in ({"content": head}, *messages)]


@lru_cache(maxsize=20_000)
def message_of(written: str) -> Message:
    """Return a message that is *written* as JSON."""
    blocks = list(blocks_of(json.loads(written)))
    return Message(tuple(read for read, _ in blocks), sum(BLOCK_TOKENS + counter()(sent) for _, sent in blocks))


@cache
def counter() -> Callable[[str], int]:
    return exact_counter()


def blocks_of(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each block of a message as it is read and as it is sent: the arguments of a call are sent as JSON."""
    content = message.get("content") or ()
    for block in [{"text": content}] if isinstance(content, str) else content:
        if "toolUse" in block:
            yield call_of(block["toolUse"]["name"], block["toolUse"]["input"])
        else:
            parts = block["toolResult"]["content"] if "toolResult" in block else [block]
            text = "\n".join(part["text"] for part in parts)
            yield text, text
    for call in message.get("tool_calls") or ():
        yield call_of(call["function"]["name"], json.loads(call["function"]["arguments"]))


def call_of(name: str, arguments: Any) -> tuple[str, str]:
    return "\n".join([name, *strings_in(arguments)]), f"{name} {json.dumps(arguments, ensure_ascii=False)}"


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_in(each)


def tokens_of(request: Request) -> int:
    return sum(message.tokens for message in request)


# Counting


def charged(before: Request, request: Request) -> Counter[str]:
    """Count what a request costs: the messages that the one *before* began with come from the provider's cache.

    It is a rewrite if anything but the last message of the one before has changed.
    """
    pairs = enumerate(zip(before, request, strict=False))
    same = next((number for number, (one, other) in pairs if one != other), min(len(before), len(request)))
    cached = tokens_of(request[:same])
    cost = CACHED * cached + UNCACHED * (tokens_of(request) - cached)
    return Counter({"calls": 1, "cost": round(cost), "rewrites": int(same < len(before) - 1)})


def unmanaged_cost(run: Run) -> int:
    """Return what a run costs if all is sent, however long it gets."""
    whole = request_of(run.system, (), run.messages)
    sent = [whole[: number + 1] for number, message in enumerate(run.messages) if message["role"] == "assistant"]
    return sum(charged(before, request)["cost"] for before, request in pairwise([[], *sent]))


class Observer:
    """Counts, at each request of a run, what it costs, and where the values stand that the agent uses next.

    *search* answers a query as the manager's own search tool would at that moment.
    """

    def __init__(self, run: Run, search: Callable[[str], Awaitable[str]] | None = None) -> None:
        self.run = run
        self.counts = Counter({"unmanaged cost": unmanaged_cost(run)})
        self._search = search
        self._before: Request = ()

    async def observe(self, number: int, request: Request) -> None:
        """Count a request to which the message with that number was the answer."""
        texts = [text for message in request[1:] for text in message.texts]
        self.counts += charged(self._before, request) + self.run.users_words(number, texts)
        self._before = request
        for name in self.run.fresh[number]:
            self.counts.update({"fresh": 1, "fresh in context": self.run.in_context(name, texts)})
        for probe in self.run.probes.get(number, ()):
            outcome = await self._outcome(probe, [self.run.system, *texts])
            self.counts.update(["probes", *outcome])
            self.counts.update(f"strict {each}" for each in ["probes", *outcome] if probe.strict)

    async def _outcome(self, probe: Probe, texts: Sequence[str]) -> list[str]:
        """Return what is true of a value: in context, named, found, found by chance, lost."""
        if self.run.in_context(probe.value, texts):
            return ["in context"]
        named = any(probe.value in text for text in texts)
        found, by_chance = [await self._finds(query, probe.value) for query in (probe.query, probe.other_query)]
        outcome = {"named": named, "found": found, "by chance": by_chance, "lost": not named and not found}
        return [each for each, is_true in outcome.items() if is_true]

    async def _finds(self, query: str, value: str) -> bool:
        if self._search is None:
            return False
        answer = await self._search(query)
        self.counts.update({"answers": 1, "answer tokens": counter()(answer)})
        return value in answer[:ANSWER]
