"""The sessions in docs/cli.md run, and print what they say they print."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import FileStorage

PAGE = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
SESSIONS = re.findall(r"^    \$ ([^\n]*)\n((?:    [^\n]*\n)*)", PAGE, re.MULTILINE)
TIMES = re.compile(r"\b1\d{9}\.\d{1,3}\b|\b1\d{12}(?=_)")
ENTRIES = [
    (12 * 86_400, "tooluse_1", b"x" * 48_200, "text/plain"),
    (2 * 86_400, "tooluse_2", b'{"rows": [0, 1, 2, 3, 4, '.ljust(1_100), "application/json"),
    (3 * 3_600, "tooluse_3", b"\x89PNG".ljust(300), "image/png"),
]


@pytest.fixture
def references(tmp_path: Path) -> list[str]:
    now = time.time()
    stores = [
        FileStorage(tmp_path / "artifacts", clock=lambda age=age: now - age).store(*entry) for age, *entry in ENTRIES
    ]
    return [asyncio.run(store) for store in stores]


def as_in_this_run(command: str, references: list[str]) -> str:
    """Return *command* with the names that its entries have now."""
    for reference in references:
        name = os.path.basename(reference)
        command = re.sub(rf"1\d{{12}}{re.escape(name[13:])}", name, command)
    return command


@pytest.mark.parametrize(("command", "expected"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_session(command, expected, references, tmp_path):
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = as_in_this_run(command, references)
    done = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
    )
    assert (done.returncode, done.stderr) == (0, "")
    expected = re.sub(r"^    ", "", expected, flags=re.MULTILINE)
    assert TIMES.sub("<time>", done.stdout).rstrip() == TIMES.sub("<time>", expected).rstrip()


def test_there_are_sessions():
    assert len(SESSIONS) >= 7
