"""What is wrong in a configuration is refused when it is built, under the name that the user wrote."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast import ContextManager, FileStorage, InMemoryStorage
from holdfast.budget import Budget
from holdfast.compression import ContextCompression, Protection, Summarize, Truncate
from holdfast.errors import HoldfastError, InvalidTypeError, InvalidValueError
from holdfast.eviction import EvictingStorage
from holdfast.history import History
from holdfast.messages import Message
from holdfast.offload import OffloadRules

WRONG = [None, "x", "false", "", 3, 0, -1, 1.5, float("nan"), True, False, [], [None], {}, {1: 2}, object(), b"x"]

Configured = Callable[[str, Any], dict[str, Any]]


def of_manager(name: str, value: Any) -> dict[str, Any]:
    return {"strategy": "auto", name: value}


def of_truncation(name: str, value: Any) -> dict[str, Any]:
    return {"compression": {"method": "truncate", name: value}}


def of_summaries(name: str, value: Any) -> dict[str, Any]:
    return {"compression": {"method": "summarize", name: value}}


def of_protect(name: str, value: Any) -> dict[str, Any]:
    return {"compression": {"protect": {name: value}}}


def of_offloader(name: str, value: Any) -> dict[str, Any]:
    return {"offloader": {name: value}}


def of_memory(name: str, value: Any) -> dict[str, Any]:
    return {"offloader": True, "offload_storage": {"kind": "memory", name: value}}


def of_files(name: str, value: Any) -> dict[str, Any]:
    return {"offloader": True, "offload_storage": {"kind": "file", name: value}}


def of_s3(name: str, value: Any) -> dict[str, Any]:
    return {"offloader": True, "offload_storage": {"kind": "s3", "bucket": "my-bucket", name: value}}


def of_evict(name: str, value: Any) -> dict[str, Any]:
    return of_memory("evict", {"max_entries": 10, name: value})


def names_in(kind: type) -> list[str]:
    return [option.name for option in fields(kind)]


OPTIONS: list[tuple[Configured, list[str]]] = [
    (of_manager, list(inspect.signature(ContextManager).parameters)),
    (of_truncation, ["method", "proactive", "low_water", "on_reduction", *names_in(Truncate)]),
    (of_summaries, ["proactive", "low_water", "on_reduction", *names_in(Summarize)]),
    (of_protect, names_in(Protection)),
    (of_offloader, [*names_in(OffloadRules), "include_retrieval_tool", "on_event"]),
    (of_memory, ["kind", "evict_after_turns", "evict"]),
    (of_files, ["artifact_dir", "fsync", "evict"]),
    (of_s3, ["bucket", "prefix", "region_name", "endpoint_url", "evict"]),
    (of_evict, ["max_entries", "max_bytes", "ttl", "turns", "chains"]),
]

FLAGS = [
    (of_manager, "include_pin_tool"),
    (of_truncation, "shorten_results"),
    (of_summaries, "shorten_results"),
    (of_offloader, "include_retrieval_tool"),
    (of_files, "fsync"),
    (of_evict, "chains"),
]

TEXTS = [
    (of_summaries, "summarization_system_prompt"),
    (of_files, "artifact_dir"),
    (of_s3, "bucket"),
    (of_s3, "prefix"),
    (of_s3, "region_name"),
    (of_s3, "endpoint_url"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refusals(configured: Configured, name: str, values: list[Any]) -> Iterator[tuple[Any, str]]:
    """Yield the values that are refused, with what is said of them. Any error but the library's own fails the test."""
    for value in values:
        try:
            ContextManager.from_config(configured(name, value))
        except HoldfastError as error:
            yield value, str(error)


@pytest.mark.parametrize(("configured", "name"), [(made, name) for made, names in OPTIONS for name in names])
def test_whatever_an_option_is_given_works_or_is_refused_by_name(configured, name):
    own_name = re.compile(rf"\b(protect_)?{name}\b" if configured is of_protect else rf"\b{name}\b")
    for value, message in refusals(configured, name, WRONG):
        assert own_name.search(message), f"{value!r}: {message}"


@pytest.mark.parametrize(("configured", "name"), FLAGS)
def test_a_flag_is_true_or_false_and_no_word_for_it(configured, name):
    others = [value for value in WRONG if not isinstance(value, bool)]
    assert [value for value, _ in refusals(configured, name, others)] == others


@pytest.mark.parametrize(("configured", "name"), TEXTS)
def test_a_text_is_nothing_else(configured, name):
    others = [value for value in WRONG if value is not None and not isinstance(value, str)]
    assert [value for value, _ in refusals(configured, name, others)] == others


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (of_s3("prefix", None), "prefix must be a string, got None"),
        (of_s3("endpoint_url", []), r"endpoint_url must be a string, got \[\]"),
        (of_offloader("exclude", {"a": 1}), "exclude must be a list of tools' names, got {'a': 1}"),
        (of_offloader("exclude", b""), "exclude must be a list of tools' names, got b''"),
        (of_offloader("thresholds", {1: 2}), "thresholds must map tools' names to tokens, got the name 1"),
        (of_memory("evict", {}), "evict bounds nothing: name at least one of max_entries, max_bytes, ttl, turns, ch"),
        (of_memory("evict", {"ttl": None, "chains": False}), "evict bounds nothing: name at least one of max_entries"),
        (of_evict("ttl", "40"), "ttl in seconds must be a positive number, got '40'"),
        (of_summaries("preserve_recent_messages", "40"), "^preserve_recent_messages must be a number of messages, got"),
        (of_summaries("preserve_recent_messages", -1), "^preserve_recent_messages must be 0 or more, got -1"),
    ],
)
def test_an_error_is_about_what_was_written(options, message):
    with pytest.raises((InvalidTypeError, InvalidValueError), match=message):
        ContextManager.from_config(options)


FORMS = (
    r"'memory', a directory, 's3://bucket/prefix', a mapping with kind, or a storage such as InMemoryStorage\(\), got "
)


@pytest.mark.parametrize("place", ["redis://h", "gs://b", "S3://b", "file:///x", ""])
def test_a_storage_of_an_unknown_scheme_is_no_directory(place):
    with pytest.raises(InvalidValueError, match=f"^offload_storage must be {FORMS}{place!r}$"):
        ContextManager("auto", offload_storage=place)


@pytest.mark.parametrize(
    ("place", "kind"), [("s3", "s3"), ("S3", "s3"), ("file", "file"), ("Memory", "memory"), ("MEMORY", "memory")]
)
def test_the_bare_name_of_a_kind_is_no_directory(place, kind):
    with pytest.raises(InvalidValueError, match=f"offload_storage='{place}' .*'./{place}' .* kind: '{kind}'"):
        ContextManager("auto", offload_storage=place)


@pytest.mark.parametrize("place", ["./s3", "./Memory", "out/file", Path("s3"), Path("artifacts")])
async def test_a_path_is_a_directory(place):
    storage = ContextManager("auto", offload_storage=place).offloader.storage
    assert isinstance(storage, FileStorage)
    await storage.store("key", b"content")
    assert list(Path(place).iterdir())


@pytest.mark.parametrize("given", ["s3://", "s3://b ad/x", "s3://my-bucket/a/../b", "a\0b", Path("a\0b")])
def test_a_place_that_cannot_be_is_told_under_its_own_name(given):
    with pytest.raises(InvalidValueError, match=r"^offload_storage cannot be "):
        ContextManager("auto", offload_storage=given)


class PathOfBytes:
    def __fspath__(self) -> bytes:
        return b"artifacts"


def test_a_path_of_bytes_is_no_directory():
    with pytest.raises(InvalidValueError, match=r"^offload_storage cannot be .*artifact_dir must be a path"):
        ContextManager("auto", offload_storage=PathOfBytes())


@pytest.mark.parametrize(
    ("given", "got"), [(3, "int"), (InMemoryStorage, "the class InMemoryStorage"), (Path, "the class Path")]
)
def test_what_is_no_storage_is_told_which_forms_there_are(given, got):
    with pytest.raises(InvalidTypeError, match=rf"^offload_storage must have store\(\) and .*{FORMS}{got}$"):
        ContextManager("auto", offload_storage=given)


async def count_later(text: str) -> int:
    return len(text)


class CountsLater:
    async def __call__(self, text: str) -> int:
        return len(text)


@pytest.mark.parametrize("name", ["count_text", "on_reduction"])
@pytest.mark.parametrize("told", [count_later, partial(count_later), CountsLater()])
def test_what_nobody_would_await_is_refused(name, told):
    with pytest.raises(InvalidTypeError, match=f"{name} must be a plain function, got an async one"):
        ContextCompression(**{name: told})


def test_chains_alone_are_a_policy_of_what_forgets_by_itself():
    storage = ContextManager.from_config(of_memory("evict", {"chains": True})).offloader.storage
    assert isinstance(storage, EvictingStorage)


async def summary_later(request: Any) -> str:
    return "what happened"


class SummarizesLater:
    async def __call__(self, request: Any) -> str:
        return "what happened"


@pytest.mark.parametrize(
    "summarizer",
    [
        summary_later,
        partial(summary_later),
        lambda request: summary_later(request),
        SummarizesLater(),
        lambda request: "what happened",
    ],
)
async def test_a_summarizer_may_answer_at_once_or_later(summarizer, caplog):
    history = History.of(Message.of_text(("user", "assistant")[number % 2], "words " * 200) for number in range(20))
    plan = await Summarize(summarizer=summarizer, protect_last=2).plan(history, Budget(window=2_000))
    assert plan.reason == "summarized to stay within the window"
    assert not caplog.messages
