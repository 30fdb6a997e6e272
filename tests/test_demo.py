"""The demo tells its story to the end, whichever agent is its hero."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from interrupts import heed_interrupts
from rich.cells import cell_len

from holdfast.cli import demo
from holdfast.cli.commands import holdfast
from holdfast.cli.demo_agents import agent_for
from holdfast.recordings import Recording, read_recordings

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")
REQUEST = re.compile(r"^ +(\d+)  [█░]+ +([\d,]+) tokens$", re.MULTILINE)


def run(*arguments: str | Path, **environment: str | None) -> Result:
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": None, "FORCE_COLOR": None, **environment})
    return runner.invoke(holdfast, ["demo", *map(str, arguments)])


def told(*arguments: str | Path, **environment: str | None) -> str:
    result = run(*arguments, **environment)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def story(kept: Path) -> str:
    return told("--agent", "loop", "--dir", kept)


def check_story(story: str) -> None:
    alone, _, managed = story.partition('ContextManager("auto")')
    assert "refused: " in alone
    assert "The run ends after" in alone
    assert "found find_longest_match, which had left the window" in managed
    assert managed.index("search_context longest") < managed.index("found find_longest_match")
    assert "none refused" in managed
    asked = [int(tokens.replace(",", "")) for _, tokens in REQUEST.findall(managed)]
    assert len(asked) > len(REQUEST.findall(alone)) > 2
    assert max(asked) <= demo.WINDOW


def test_alone_the_agent_is_refused_and_with_a_manager_it_goes_on_to_the_end(story: str):
    check_story(story)


@pytest.mark.strands
def test_the_same_happens_to_an_agent_of_strands(tmp_path: Path):
    check_story(told("--agent", "strands", "--dir", tmp_path))


def test_the_story_begins_with_the_task_and_ends_with_what_was_saved(story: str):
    assert story.startswith("The agent's task: Which method")
    saved = re.search(
        r"^With holdfast: \$(\S+) instead of \$(\S+), and 0 requests refused instead of \d+\.$", story, re.M
    )
    assert saved is not None
    assert float(saved[1]) < float(saved[2]) / 5


def test_each_offload_and_each_reduction_has_its_line(story: str):
    assert len(re.findall(r"^ +offloaded: [\d,]+ tokens became [\d,]+$", story, re.MULTILINE)) > 10
    assert re.search(r"^ +history reduced: [\d,]+ tokens became [\d,]+; \d+ messages", story, re.MULTILINE)


def test_the_table_compares_both(story: str):
    table = story.partition("1 recording, window of 40,000 tokens")[2]
    rows = {line.split("  ")[1].strip(): line.split()[-2:] for line in table.splitlines() if line.startswith("  ")}
    assert rows["requests"][0] == rows["requests"][1]
    above = [int(figure) for figure in rows["… above the window"]]
    assert above[0] > 0 == above[1]
    tokens = [int(figure.replace(",", "")) for figure in rows["tokens sent"]]
    assert tokens[1] < tokens[0] / 5


def test_the_page_and_the_recording_and_what_left_stay(story: str, kept: Path):
    assert kept.joinpath("report.html").as_uri() in story
    assert "The agent of the demo" in kept.joinpath("report.html").read_text(encoding="utf-8")
    assert len(list(kept.joinpath("artifacts").iterdir())) > 10
    [recording] = read_recordings([kept / "recording.jsonl"])
    assert isinstance(recording, Recording)
    assert sum(message["role"] == "assistant" for message in recording.messages) == 25


def test_the_tools_really_look_at_this_machine(story: str, kept: Path):
    conversation = json.loads(kept.joinpath("recording.jsonl").read_text(encoding="utf-8"))
    results = {
        message["tool_call_id"]: message["content"] for message in conversation["messages"] if message["role"] == "tool"
    }
    calls = [call for message in conversation["messages"] for call in message.get("tool_calls") or ()]
    by_tool = {call["function"]["name"]: results[call["id"]] for call in calls}
    assert "  asyncio/__init__.py\n" in by_tool["list_library"]
    assert "name" in json.loads(by_tool["describe_packages"])[0]
    assert compile(by_tool["read_module"], "module", "exec")
    assert re.search(r"^\w[\w/.]*\.py:\d+:", by_tool["grep_library"])


def test_without_a_directory_the_files_go_to_a_new_temporary_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    colourful = told("--agent", "loop", FORCE_COLOR="1", TERM="xterm")
    [folder] = tmp_path.iterdir()
    assert folder.name.startswith("holdfast-demo-")
    assert folder.joinpath("report.html").exists()
    assert COLOUR.search(colourful)


def test_a_directory_that_cannot_be_made_is_an_error_in_words(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    place = tmp_path / "file" / "folder"
    result = run("--agent", "loop", "--dir", place)
    assert (result.exit_code, result.output) == (1, f"Error: {place} cannot be written: Not a directory\n")


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path):
    mine = tmp_path / "report.html"
    mine.write_text("mine")
    result = run("--agent", "loop", "--dir", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path} is not empty; name a new folder, or an empty one" in " ".join(result.output.split())
    assert mine.read_text() == "mine"


def test_a_story_that_breaks_off_leaves_no_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(demo, "QUERY", "zyxwvu")
    assert run("--agent", "loop").exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_without_strands_the_plain_loop_is_the_hero_and_asking_for_it_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch,
):
    for name in [name for name in sys.modules if name.startswith("holdfast.adapters.strands.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "strands", None)
    assert agent_for().kind == "A plain loop"
    result = run("--agent", "strands")
    assert (result.exit_code, result.output) == (
        1,
        "Error: strands is not installed; run: pip install 'holdfast[strands]'\n",
    )


def test_the_demo_fails_if_what_left_is_not_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo, "QUERY", "zyxwvu")
    result = run("--agent", "loop", "--dir", tmp_path)
    assert result.exit_code == 1
    assert "was not found again" in result.output


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_of_the_work_is_wider_than_a_terminal_and_all_figures_are_shown(width: int, tmp_path: Path):
    story = told("--agent", "loop", "--dir", tmp_path / "new", FORCE_COLOR="1", COLUMNS=str(width))
    work = STYLE.sub("", story.partition("1. ")[2].partition("3. ")[0]).splitlines()
    assert max(cell_len(line) for line in work if line.startswith("   ")) <= width
    assert all(line.endswith(" tokens") for line in work if re.match(r" +\d+  ", line))


def test_a_file_or_pipe_gets_plain_text(story: str):
    assert "\x1b" not in story


@pytest.mark.extended
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_installed_script_runs_the_demo(encoding: str, tmp_path: Path):
    script = Path(sys.executable).with_name("holdfast")
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [script, "demo", "--dir", tmp_path],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        env=environment,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "none refused" in done.stdout
    assert "\\u2026" not in done.stdout


@pytest.mark.extended
@pytest.mark.parametrize("agent", ["loop", pytest.param("strands", marks=pytest.mark.strands)])
def test_ctrl_c_ends_the_story_at_once(agent: str, tmp_path: Path):
    script = Path(sys.executable).with_name("holdfast")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen([script, "demo", "--agent", agent], preexec_fn=heed_interrupts, **options) as shown:
        assert shown.stdout is not None
        next(line for line in shown.stdout if line.startswith("2. "))
        shown.send_signal(signal.SIGINT)
        output, errors = shown.communicate(timeout=30)
    assert (shown.returncode, errors.strip()) == (1, "Aborted!")
    assert "3. " not in output
    assert len(output.splitlines()) < 20
    assert list(tmp_path.iterdir()) == []
