"""What the model of the demo answers, step by step, and what its tools said: a recording in the making."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from holdfast.cli.demo_tools import TOOLS, largest_modules
from holdfast.recordings import Recording
from holdfast.testing import Call

__all__ = ["QUERY", "SOUGHT", "SYSTEM", "TASK", "Journal", "Step", "script"]

SYSTEM = "You look through the Python of this machine with the tools you have."
TASK = "Which method of the standard library finds the longest matching block of two sequences?"
QUERY = "longest matching block of two sequences"
SOUGHT = "find_longest_match"
"""What the last step searches for by those words. The agent saw it at the beginning, in a file that left the window."""

_FIRST_GREPS = ("import os", "except OSError", "def main")
_GREPS = ("raise ValueError", "return self", "def __init__", "import sys")
_MODULES = 14
_RUNS = {tool.name: tool.run for tool in TOOLS}


@dataclass(frozen=True)
class Step:
    """One answer of the model: what it says, and the tool that it calls."""

    said: str
    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> list[Any]:
        """The step as a scripted model takes it."""
        return [self.said, Call(self.name, dict(self.arguments))]


def script() -> list[Step]:
    """Return the work: a look around, one file that matters, and then much that fills the window.

    The last files are named as the first listing showed them, long before.
    """
    paths = sorted(largest_modules(_MODULES), key=lambda path: ("/" in path, path))
    first, *others = [Step(f"Now {_in_words(path)}.", "read_module", {"path": path}) for path in paths]
    return [
        Step("First, what there is.", "list_library"),
        Step("This may have it.", "read_module", {"path": "difflib.py"}),
        *map(_grep, _FIRST_GREPS),
        first,
        *map(_grep, _GREPS),
        Step("And what is installed.", "describe_packages"),
        *others,
    ]


def _in_words(path: str) -> str:
    return " of ".join(reversed(PurePath(path).with_suffix("").parts))


def _grep(text: str) -> Step:
    return Step(f"Where is {text!r}?", "grep_library", {"text": text})


class Journal:
    """Runs tools, and writes down what the model said, what it asked of them, and what they answered."""

    def __init__(self, on_result: Callable[[str, Mapping[str, Any], str], None]) -> None:
        self._on_result = on_result
        self._said = ""
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": TASK}]

    def say(self, text: str) -> None:
        """Write down what the model says with its next call."""
        self._said = text

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return what the tool of that name says."""
        result = _RUNS[name](**arguments)
        number = len(self._messages)
        function = {"name": name, "arguments": json.dumps(dict(arguments))}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        self._messages.append({"role": "assistant", "content": self._said, "tool_calls": [call]})
        self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        self._on_result(name, arguments, result)
        return result

    def recording(self, answer: str) -> Recording:
        """Return the conversation as an agent without a manager would have had it."""
        messages = (*self._messages, {"role": "assistant", "content": answer})
        specs = tuple(tool.spec for tool in TOOLS)
        return Recording("the agent of the demo", "openai", "openai", messages, SYSTEM, specs)
