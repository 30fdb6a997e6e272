"""strands' own ContextOffloader, unchanged, on each of our backends, in a real strands agent."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from holdfast import FileStorage, InMemoryStorage, Storage

strands = pytest.importorskip("strands")

pytestmark = pytest.mark.strands

LINES = [f"line {number}: {number * number}" for number in range(5_000)]


class ScriptedModel(strands.models.Model):
    """Calls a tool with a large result, asks for one line of what was offloaded, and ends."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def update_config(self, **config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        self.requests.append(json.loads(json.dumps(messages, default=repr)))
        for event in self.answer(text_of(messages[-1])):
            yield event

    def answer(self, last: str) -> list[Any]:
        if len(self.requests) == 1:
            return tool_use("numbers", {})
        if len(self.requests) == 2:
            reference = re.search(r"[^\s`'\"\[\],]*\d+_\d+_[^\s`'\"\[\],)]+|mem_[^\s`'\"\[\],)]+", last)
            assert reference, last
            query = {"reference": reference[0].rstrip("."), "line_range": {"start": 4_001, "end": 4_001}}
            return tool_use("retrieve_offloaded_content", query)
        return text("done")


def text_of(message: Any) -> str:
    return json.dumps(message["content"])


def tool_use(name: str, arguments: dict[str, Any]) -> list[Any]:
    start = {"toolUse": {"toolUseId": f"tooluse_{name}", "name": name}}
    return turn(start, {"toolUse": {"input": json.dumps(arguments)}}, "tool_use")


def text(words: str) -> list[Any]:
    return turn({}, {"text": words}, "end_turn")


def turn(start: Any, delta: Any, reason: str) -> list[Any]:
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
        {"messageStop": {"stopReason": reason}},
    ]


@strands.tool
def numbers() -> str:
    """Return many numbers."""
    return "\n".join(LINES)


@pytest.fixture(params=["memory", "files", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "memory":
        return InMemoryStorage()
    return FileStorage(tmp_path / "artifacts") if request.param == "files" else request.getfixturevalue("open_s3")()


def test_a_large_result_leaves_the_window_and_can_be_looked_up(storage):
    from strands.vended_plugins.context_offloader import ContextOffloader

    model = ScriptedModel()
    agent = strands.Agent(model=model, tools=[numbers], plugins=[ContextOffloader(storage)], callback_handler=None)
    result = agent("go")
    assert str(result).strip() == "done"
    preview, found = text_of(model.requests[1][-1]), text_of(model.requests[2][-1])
    assert len(preview) < 20_000
    assert LINES[4_000] not in preview
    assert LINES[4_000] in found


async def test_its_default_sandbox_is_the_host_so_files_are_as_safe_as_there(tmp_path):
    from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment

    for fsync in (False, True):
        bound = FileStorage(tmp_path / "artifacts", fsync=fsync).for_sandbox(NotASandboxLocalEnvironment())
        path = Path(await bound.store("tooluse/1", b"content"))
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert await FileStorage(tmp_path / "artifacts").retrieve(str(path)) == (b"content", "text/plain")


async def test_a_directory_that_strands_wrote_is_readable(tmp_path):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from strands.vended_plugins.context_offloader import FileStorage as StrandsFileStorage

        theirs = StrandsFileStorage(str(tmp_path))
    kinds = ("text/plain", "application/json", "image/png", "application/vnd.ms-excel", "text/x-odd")
    ours = FileStorage(tmp_path)
    for kind in kinds:
        reference = await theirs.store("tooluse/1", b"content", kind)
        assert await ours.retrieve(reference) == (b"content", kind)
        assert await ours.retrieve(str(tmp_path / reference)) == (b"content", kind)
    assert {entry.content_type async for entry in ours.entries()} == set(kinds)
