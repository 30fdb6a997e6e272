"""The estimate of tokens beside the exact tokenizer, in error and in speed; and beside characters / 4.

Runs over the payloads and the recorded runs below HOLDFAST_DATA, or ../shared/data. The error of a kind is that of all
its texts together. Rounds of the contenders alternate, and the median counts. Prints the table; with --write, the
figures go to results.json and the pages as well.
"""

from __future__ import annotations

import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from statistics import mean
from typing import Any, NamedTuple

from reporting import DATA, Benchmark, Row, alternating, faster

from holdfast.tokens.exact import exact_counter
from holdfast.tokens.text import estimate_text

TRACES = ("swe", "tau", "web")
SHORT = 1_000

Count = Callable[[str], int]


class Sample(NamedTuple):
    """A text, and the kind that it is of."""

    kind: str
    text: str


class Totals(NamedTuple):
    """The tokens of some texts: counted, estimated, and by rule of thumb."""

    exact: int
    estimated: int
    quartered: int


# What is measured


@cache
def payloads() -> list[Sample]:
    """The outputs of tools, by the kinds of the manifest."""
    entries = json.loads((DATA / "outputs" / "manifest.json").read_text(encoding="utf-8"))
    return [Sample(entry["kind"], (DATA / "outputs" / entry["file"]).read_bytes().decode()) for entry in entries]


@cache
def messages() -> list[Sample]:
    """What was said in the recorded runs, by file and role."""
    return [Sample(f"{name} {role}", text) for name in TRACES for role, text in said_in(name) if text]


def said_in(name: str) -> Iterator[tuple[str, str]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for run in map(json.loads, lines):
            yield "system", run["system"] or ""
            for message in run["messages"]:
                yield from said_by(message)


def said_by(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield message["role"], message["content"] or ""
    for call in message.get("tool_calls") or ():
        yield "arguments", call["function"]["arguments"]


# Error


def measure_payloads() -> list[Row]:
    """the error over the outputs of tools"""
    every = [totals([sample]) for sample in payloads()]
    return [
        within(f"mean error over {len(every)} outputs of tools", 0.08, mean(errors(every)), mean(thumb_errors(every))),
        worst("… of the worst kind", payloads()),
    ]


def measure_messages() -> list[Row]:
    """the error over the messages of recorded runs"""
    kinds = list(by_kind(messages()).values())
    measure = f"mean error over {len(messages()):,} messages of recorded runs, by file and role"
    return [
        within(measure, 0.08, mean(errors(kinds)), mean(thumb_errors(kinds))),
        worst("… of the worst file and role", messages()),
    ]


def within(measure: str, bar: float, error: float, thumb_error: float) -> Row:
    """A row that allows an error of at most *bar*, and tells that of characters / 4."""
    return Row(f"{measure} (characters / 4: {thumb_error:.0%})", f"≤ {bar:.0%}", f"{error:.1%}", error <= bar)


def worst(measure: str, samples: Sequence[Sample]) -> Row:
    kinds = by_kind(samples)
    error, kind = max(zip(errors(list(kinds.values())), kinds, strict=True))
    return within(f"{measure}, {kind}", 0.20, error, max(thumb_errors(list(kinds.values()))))


def by_kind(samples: Sequence[Sample]) -> dict[str, Totals]:
    kinds = defaultdict(list)
    for sample in samples:
        kinds[sample.kind].append(sample)
    return {kind: totals(own) for kind, own in kinds.items()}


def totals(samples: Sequence[Sample]) -> Totals:
    texts = [sample.text for sample in samples]
    quartered = sum(len(text) // 4 for text in texts)
    return Totals(sum(map(counter(), texts)), sum(map(estimate_text, texts)), quartered)


def errors(measured: Sequence[Totals]) -> list[float]:
    return [abs(each.estimated / each.exact - 1) for each in measured]


def thumb_errors(measured: Sequence[Totals]) -> list[float]:
    return [abs(each.quartered / each.exact - 1) for each in measured]


@cache
def counter() -> Count:
    return exact_counter()


# Speed


def measure_speed() -> list[Row]:
    """the speed over both"""
    said = [sample.text for sample in messages()]
    return [
        speed("estimating all outputs of tools, against counting", 5, [sample.text for sample in payloads()]),
        speed("estimating all messages, against counting", 5, said),
        speed(f"… those of up to {SHORT:,} characters", 1, [text for text in said if len(text) <= SHORT]),
    ]


def speed(measure: str, bar: float, texts: Sequence[str]) -> Row:
    contenders = {"estimate": lambda: seconds(estimate_text, texts), "count": lambda: seconds(counter(), texts)}
    medians = alternating(contenders, rounds=7)
    return faster(measure, bar, medians["estimate"], medians["count"])


def seconds(count: Count, texts: Sequence[str]) -> float:
    began = time.process_time()
    for text in texts:
        count(text)
    return time.process_time() - began


BENCHMARK = Benchmark(
    name="tokens",
    measures=(measure_payloads, measure_messages, measure_speed),
    packages=("bpe-openai",),
    data=(DATA / "outputs" / "manifest.json", *(DATA / f"{name}.jsonl.gz" for name in TRACES)),
)

if __name__ == "__main__":
    BENCHMARK.run()
