"""Every code block of README and of the docs runs, and prints what it says it prints."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
MOMENT = re.compile(r"\b1\d{12}_")


def blocks() -> list[object]:
    found = [(page, match) for page in PAGES for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]
    # The one file among them is read by tests/test_configuration_docs.py.
    found = [(page, match) for page, match in found if match[1] != "yaml"]
    return [
        pytest.param(
            *match.groups(), id=f"{page.name}:{page.read_text(encoding='utf-8')[: match.start()].count(chr(10)) + 1}"
        )
        for page, match in found
    ]


@pytest.fixture(scope="module")
def environment(s3_server) -> dict[str, str]:
    s3_server.create_bucket("my-agent-artifacts")
    return os.environ | {
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "AWS_DEFAULT_REGION": s3_server.region,
        "AWS_ENDPOINT_URL_S3": s3_server.endpoint_url,
    }


@pytest.mark.parametrize(("language", "code", "output"), blocks())
def test_block(language, code, output, tmp_path, environment):
    """Blocks marked ``python test`` are test files; all others are programs, with their output in the next block."""
    assert language in ("python", "python test")
    if "strands" in code:
        pytest.importorskip("strands")
    path = tmp_path / "test_block.py"
    path.write_text(code, encoding="utf-8")
    command = (
        [sys.executable, "-m", "pytest", "-q", path.name] if language == "python test" else [sys.executable, path.name]
    )
    answer = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 0, answer.stdout[-3_000:] + answer.stderr[-3_000:]
    if output is not None:
        assert MOMENT.sub("<ms>_", answer.stdout) == MOMENT.sub("<ms>_", output)


PLACES = ("kept", "searchable", "recoverable", "lost")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    ("file", "mark"),
    [
        ("storage.json", "benchmark"),
        ("eviction.json", "eviction benchmark"),
        ("tokens.json", "tokens benchmark"),
        ("compression.json", "compression benchmark"),
        ("offload.json", "offload benchmark"),
        ("search.json", "search benchmark"),
        ("strands_turns.json", "strands_turns benchmark"),
    ],
)
def test_the_quoted_figures_are_those_of_the_last_benchmark(file, mark):
    results = json.loads((ROOT / "benchmarks" / file).read_text(encoding="utf-8"))
    quoted = README.read_text(encoding="utf-8").partition(f"<!-- {mark} -->")[2].partition(f"<!-- /{mark} -->")[0]
    for row in results["rows"]:
        assert f"| {row['measure']} | {row['bar']} | {row['result']}" in quoted
    assert results["machine"] in quoted


def test_the_quoted_places_of_values_are_those_of_the_last_benchmark():
    results = json.loads((ROOT / "benchmarks" / "recall.json").read_text(encoding="utf-8"))
    quoted = README.read_text(encoding="utf-8").partition("<!-- recall benchmark -->")[2]
    for row in results["rows"]:
        count = sum(row["places"].values())
        shares = " | ".join(f"{row['places'][place] / count:.1%}" for place in PLACES)
        assert f"({count:,}) | {row['window']:,} | {row['manager']} | {shares} | {row['bill']:.2f} |" in quoted
    assert results["machine"] in quoted


def test_a_newcomer_sees_the_program_and_the_commands_on_the_first_screen():
    first_screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:50])
    for expected in ("```python", "pip install", "make demo", "make test"):
        assert expected in first_screen
