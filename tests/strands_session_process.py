"""An agent in a process of its own, which is killed in the middle of its work, and what its model had seen by then.

python strands_session_process.py KIND DIRECTORY: the model's last request is left in DIRECTORY/seen.json.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import strands
from strands.session import FileSessionManager, SnapshotSessionManager
from strands.storage import LocalFileStorage

from holdfast import FileStorage
from holdfast.adapters.strands import ContextManager
from holdfast.testing import Call, ScriptedModel

WINDOW = 8_000


def as_bytes(messages: list[Any]) -> str:
    """Return what a model sees of messages: byte for byte, if these are equal."""
    return json.dumps([[message["role"], message["content"]] for message in messages], default=repr)


def lines(number: int, size: int) -> str:
    """Return a text of about so many characters, the same each time."""
    return "\n".join(
        f"{number}.{line}: the value is {(number * 7919 + line * 104729) % 99991}" for line in range(size // 32)
    )


@strands.tool
def read(number: int, size: int) -> str:
    """Return a text."""
    return lines(number, size)


def session_in(directory: Path, kind: str) -> Any:
    """Open the session that is kept in a directory."""
    if kind == "file":
        return FileSessionManager("talk", storage_dir=str(directory / "sessions"))
    storage = LocalFileStorage(str(directory / "sessions"))
    return SnapshotSessionManager("talk", storage=storage, save_latest_on=kind.removeprefix("snapshot-"))


def agent_in(directory: Path, kind: str, model: Any) -> Any:
    """Start, or start again, the agent whose session is kept in a directory."""
    manager = ContextManager("auto", offload_storage=FileStorage(directory / "artifacts"))
    session = session_in(directory, kind)
    return strands.Agent(model=model, tools=[read], plugins=[manager], session_manager=session, callback_handler=None)


class UntilReduced:
    """Reads on and on, and is killed while the model thinks about the first history that became shorter."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._longest = 0

    def __call__(self, request: Any) -> Any:
        (self._directory / "seen.json").write_text(as_bytes(request.messages))
        if len(request.messages) < self._longest:
            os.kill(os.getpid(), signal.SIGKILL)
        self._longest = len(request.messages)
        if request.number == 2:
            return "I have read it."
        return Call("read", {"number": request.number, "size": 30_000 if request.number == 1 else 3_000})


def main(kind: str, directory: Path) -> None:
    """Talk until the process is killed."""
    agent = agent_in(directory, kind, ScriptedModel(UntilReduced(directory), window=WINDOW))
    agent("Read the large text.")
    (directory / "after_first.json").write_text(as_bytes(agent.messages))
    agent("Now read all the others, and compare them.")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
