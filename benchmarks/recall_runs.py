"""Recorded runs, the probes into them, and what a provider would charge for the requests of a run.

The folder is HOLDFAST_DATA, or ../shared/data.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.tokens.exact import exact_counter

DATA = Path(os.environ.get("HOLDFAST_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
NAMES = ("swe", "tau")
WIRE_KEYS = ("role", "content", "tool_calls", "tool_call_id")
UNCACHED, CACHED = 1.25, 0.1
MOST_COUNTED = 50_000
PAGE = 2_500
WRITTEN_AS_JSON = ("input", "parameters", "inputSchema")

_counted: dict[str, int] = {}

Message = dict[str, Any]


@dataclass(frozen=True)
class Probe:
    """A value that an agent used at message *at*, long after it had last seen it."""

    at: int
    value: str
    hint: str
    kind: str
    strict: bool


@dataclass(frozen=True)
class Run:
    """A recorded run in the form of OpenAI, and the probes into it."""

    name: str
    id: str
    system: str | None
    messages: tuple[Message, ...]
    probes: tuple[Probe, ...]

    def probes_at(self, number: int) -> Iterator[Probe]:
        """Yield what the answer with that number made use of."""
        return (probe for probe in self.probes if probe.at == number)


@cache
def recorded(name: str) -> tuple[Run, ...]:
    """Return the runs of one file, with their probes."""
    probes = defaultdict(list)
    for line in _lines(f"{name}.probes.jsonl.gz"):
        strict = line["n_evidence"] == 1 and line["origin"] == "tool"
        probes[line["trace"]].append(Probe(line["at"], line["value"], line["query_hint"], line["kind"], strict))
    return tuple(_run(name, line, probes[line["id"]]) for line in _lines(f"{name}.jsonl.gz"))


def words_of_another(run: Run, probe: Probe) -> str:
    """Return the words of a probe into another run: what they find of this one is found by chance."""
    others = [other.hint for each in recorded(run.name) if each.id != run.id for other in each.probes]
    return others[(len(run.messages) + probe.at) % len(others)]


def _run(name: str, line: dict[str, Any], probes: Iterable[Probe]) -> Run:
    messages = ({key: said[key] for key in WIRE_KEYS if key in said} for said in line["messages"])
    return Run(name, line["id"], line["system"], tuple(messages), tuple(probes))


def _lines(file: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Part(NamedTuple):
    """A message of a request, or what comes before all messages: the text that a cache compares, and its tokens."""

    text: str
    tokens: int


@dataclass
class Bill:
    """What the requests of one run cost: what the one before began with comes from the provider's cache."""

    uncached: int = 0
    cached: int = 0
    peak: int = 0
    requests: int = 0
    rewrites: int = 0
    looked_up: float = 0
    _last: Sequence[Part] = field(default=(), repr=False)

    def add(self, request: Sequence[Part]) -> None:
        """Add a request."""
        common = _common(self._last, request)
        alike = tokens_of(request[:common])
        self.rewrites += common < len(self._last)
        self.cached += alike
        self.uncached += tokens_of(request) - alike
        self.peak = max(self.peak, tokens_of(request))
        self.requests += 1
        self._last = request

    def add_apart(self, request: Sequence[Part]) -> None:
        """Add a request that has nothing to do with the others, such as one for a summary."""
        self.uncached += tokens_of(request)

    def add_look_up(self, request: Sequence[Part], *answers: str) -> None:
        """Add the price of a look-up, apart: one more request for each answer, a page of which stands behind it."""
        for answer in answers:
            page = min(_part(answer).tokens, PAGE)
            self.looked_up += CACHED * tokens_of(request) + UNCACHED * page


def request_of(system: Any, tools: Any, messages: Iterable[Any]) -> list[Part]:
    """Return a request, part by part."""
    return list(map(_part, [[system or "", tools or []], *messages]))


def tokens_of(request: Iterable[Part]) -> int:
    """Return how many tokens a request is."""
    return sum(part.tokens for part in request)


def text_of(request: Iterable[Part]) -> str:
    """Return all that a request says."""
    return "\n".join(part.text for part in request)


def unmanaged(run: Run) -> Bill:
    """Return the bill of a run whose history is sent as it is, however long it gets."""
    bill, request = Bill(), request_of(run.system, None, run.messages)
    for number, message in enumerate(run.messages):
        if message["role"] == "assistant":
            bill.add(request[: number + 1])
    return bill


def _part(value: Any) -> Part:
    """Return JSON in which every word can be read as it is, and the tokens of what it says, counted once."""
    text = json.dumps(value, ensure_ascii=False)
    if text not in _counted:
        if len(_counted) > MOST_COUNTED:
            _counted.clear()
        _counted[text] = sum(map(_counter(), _said(value)))
    return Part(text, _counted[text])


def _said(value: Any) -> Iterator[str]:
    """Yield what a provider reads of a value: texts, and the arguments of tools and what is told of these as JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from [json.dumps(each, ensure_ascii=False)] if key in WRITTEN_AS_JSON else _said(each)
    elif isinstance(value, list):
        for each in value:
            yield from _said(each)
    elif value is not None:
        yield json.dumps(value, ensure_ascii=False)


@cache
def _counter() -> Callable[[str], int]:
    return exact_counter()


def _common(before: Sequence[Part], now: Sequence[Part]) -> int:
    """Return how many parts two requests begin with alike."""
    pairs = enumerate(zip(before, now, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(before), len(now)))
