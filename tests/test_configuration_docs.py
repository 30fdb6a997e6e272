"""The configuration reference names every option with its default, and no other."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from holdfast import ContextCompression, ContextManager, ContextOffloader, defaults
from holdfast.compression import SUMMARY_PROMPT, Summarize, Truncate
from holdfast.offload import OffloadRules

PAGE = (Path(__file__).parent.parent / "docs" / "configuration.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(\w+)` \| `?([^|]*?)`? \| ", re.MULTILINE)


def table_after(start: str) -> dict[str, str]:
    text = PAGE.partition(start)[2].lstrip("\n")
    return dict(ROW.findall(text.partition("\n\n")[0]))


def shown(value: Any) -> str:
    return "SUMMARY_PROMPT" if value is SUMMARY_PROMPT else repr(value).replace("'", '"')


def options_of(kind: type) -> dict[str, str]:
    return {option.name: shown(option.default) for option in fields(kind)}


def arguments_of(kind: type, *names: str) -> dict[str, str]:
    parameters = inspect.signature(kind).parameters
    return {name: shown(parameters[name].default) for name in names or parameters}


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("## The manager", arguments_of(ContextManager)),
        (
            "Of both methods, beside `method` itself:",
            arguments_of(ContextCompression, "proactive", "low_water", "marker_tokens", "on_reduction"),
        ),
        ('With `"truncate"`:', options_of(Truncate)),
        ('With `"summarize"`:', options_of(Summarize)),
        (
            "## Offloader",
            options_of(OffloadRules) | arguments_of(ContextOffloader, "include_retrieval_tool", "on_event"),
        ),
    ],
)
def test_every_option_is_named_with_its_default(start, expected):
    assert table_after(start) == expected


def test_the_table_of_defaults_quotes_the_code():
    table = PAGE.partition("## Defaults")[2].partition("## The manager")[0]
    for quoted in (
        f"`threshold` | {defaults.THRESHOLD:,} tokens",
        f"`preview_tokens` | {defaults.PREVIEW_TOKENS:,} tokens",
        f'`method` | `"{defaults.METHOD}"`',
        f"`window_size` | {defaults.WINDOW_SIZE} messages",
        f"from {defaults.TRIGGER} of the window on, down to {defaults.LOW_WATER}",
        f"forgets after {defaults.EVICT_AFTER_TURNS} turns",
        f"{defaults.WINDOW:,} tokens, and a warning",
        f"| {defaults.ANSWER_TOKENS:,} tokens",
    ):
        assert quoted in table
    assert len(re.findall(r"^\|", table, re.MULTILINE)) == 8 + 2


def test_the_file_in_the_page_is_accepted():
    config: dict[str, Any] = {}
    # It holds nothing but nested mappings, words, numbers and one list; no YAML library is needed to read that.
    levels = [config]
    for line in PAGE.partition("```yaml\n")[2].partition("```")[0].splitlines():
        depth, (name, _, value) = (len(line) - len(line.lstrip())) // 2, line.strip().partition(":")
        levels[depth + 1 :] = []
        levels[depth][name] = _value(value.strip()) if value else {}
        if not value:
            levels.append(levels[depth][name])
    manager = ContextManager.from_config(config)
    assert manager.offloader.rules.threshold == 4_000
    assert manager.compression.compressor.window_size == 60


def _value(text: str) -> Any:
    if text.startswith("["):
        return text.strip("[]").split(", ")
    return int(text) if text.isdigit() else text
