from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.cells import cell_len

from holdfast import Entry, FileStorage
from holdfast.cli import demo
from holdfast.cli.commands import holdfast
from holdfast.cli.demo import Sample

IDENTICAL = "identical: yes"
COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-7]")


class LosesTheLastByte(FileStorage):
    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        content, content_type = await super().retrieve(reference)
        return content[:-1], content_type


class ForgetsContentTypes(FileStorage):
    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return (await super().retrieve(reference))[0], "text/plain"


class ReadsRangesOneByteOff(FileStorage):
    async def retrieve_range(self, reference: str, start: int, end: int):
        return await super().retrieve_range(reference, start + 1, end + 1)


def run(*arguments: str | Path, **environment: str | None) -> Result:
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": None, "FORCE_COLOR": None, **environment})
    return runner.invoke(holdfast, list(map(str, arguments)))


def run_demo(*arguments: str | Path, **environment: str | None) -> str:
    result = run("demo", *arguments, **environment)
    assert result.exit_code == 0, result.output
    return result.output


def run_process(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env={**os.environ, **environment})


async def read_all(folder: Path) -> list[tuple[Entry, bytes, str]]:
    storage = FileStorage(folder)
    return [(entry, *await storage.retrieve(entry.reference)) async for entry in storage.entries()]


@pytest.fixture(scope="module")
def outputs() -> list[Sample]:
    return demo.samples()


@pytest.fixture(autouse=True)
def outputs_are_made_once(outputs: list[Sample], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "samples", lambda: outputs)


@pytest.mark.parametrize("name", sorted(holdfast.commands))
def test_every_command_has_help(name: str):
    command, result = holdfast.commands[name], run(name, "--help")
    assert result.exit_code == 0
    assert command.help
    assert all(getattr(parameter, "help", None) for parameter in command.params)
    assert command.help.split(".")[0] in " ".join(result.output.split())


def test_the_group_has_help_that_names_every_command():
    result = run("--help")
    assert result.exit_code == 0
    assert holdfast.help
    assert all(name in result.output for name in holdfast.commands)


def test_the_version_is_that_of_the_installed_package():
    assert run("--version").output.strip().endswith(version("holdfast"))


def test_outputs_are_large_and_of_different_kinds(outputs: list[Sample]):
    assert all(len(sample.content) > 20_000 for sample in outputs)
    assert len({sample.content_type for sample in outputs}) == len(outputs)


def test_outputs_are_of_this_machine(outputs: list[Sample]):
    packages, files, code, modules = (sample.content for sample in outputs)
    assert "holdfast" in {package["name"] for package in json.loads(packages)}
    assert b"  asyncio/__init__.py\n" in files
    assert compile(code, "code", "exec")
    assert "textwrap.py" in zipfile.ZipFile(io.BytesIO(modules)).namelist()


def test_the_demo_shows_what_went_in_and_what_came_out(outputs: list[Sample]):
    output = run_demo()
    for sample in outputs:
        row = next(line for line in output.splitlines() if sample.title in line)
        assert re.search(rf"{re.escape(sample.content_type)} +[0-9.]+ [kM]B +[0-9]+_[0-9]_{sample.key}\.", row)
    assert re.search(r"[0-9.]+ MB shrink to 4 references, [0-9]+ characters", output)
    before, after = re.findall(r"sha256 (?:in|out) +([0-9a-f]{64})\n", output)
    assert before == after
    assert re.search(IDENTICAL + r", bytes [0-9,]+ to [0-9,]+ of [0-9,]+\n", output)


def test_the_demo_finds_everything_again_after_a_restart(outputs: list[Sample]):
    _, _, after = run_demo().partition("After a restart")
    assert "entries: 4, " in after
    for sample in outputs:
        assert f"{IDENTICAL}, {sample.key}, still {sample.content_type}\n" in after


def test_the_demo_shows_why_a_wrong_reference_leads_to_nothing():
    output = " ".join(run_demo().split())
    assert "reference not found: '../../etc/passwd' (it is outside " in output
    assert "no such file: never stored here" in output


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    lines = run_demo("--dir", "artifacts", COLUMNS=str(columns)).splitlines()
    assert max(map(cell_len, lines)) <= columns


def test_references_are_never_broken(tmp_path: Path):
    folder = tmp_path / "a-directory-with-a-name" / "that-alone-is-wider-than-the-terminal"
    output = run_demo("--dir", folder, COLUMNS="60")
    references = [entry.reference for entry, *_ in asyncio.run(read_all(folder))]
    assert all(os.path.basename(reference) in output for reference in references)
    assert sum(reference in output for reference in references) == 2


def test_without_a_directory_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    output = run_demo()
    assert f"{tmp_path}/holdfast-demo-" in output
    assert "The temporary files are gone" in output
    assert list(tmp_path.iterdir()) == []


def test_with_a_directory_the_files_stay_and_can_be_retrieved(tmp_path: Path, outputs: list[Sample]):
    folder = tmp_path / "kept"
    output = run_demo("--dir", folder)
    assert str(folder) in output
    assert "The files stay" in output
    kept = {(entry.key, content, content_type) for entry, content, content_type in asyncio.run(read_all(folder))}
    assert kept == {(sample.key, sample.content, sample.content_type) for sample in outputs}


def test_a_second_demo_in_one_directory_adds_to_the_first(tmp_path: Path):
    run_demo("--dir", tmp_path)
    assert "entries: 8, " in run_demo("--dir", tmp_path)


def test_a_directory_that_cannot_be_made_is_an_error_in_words(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    result = run("demo", "--dir", tmp_path / "file" / "folder")
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "Error: " in result.output


@pytest.mark.parametrize("broken", [LosesTheLastByte, ForgetsContentTypes, ReadsRangesOneByteOff])
def test_the_demo_fails_if_a_content_comes_back_changed(broken: type[FileStorage], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(demo, "FileStorage", broken)
    result = run("demo")
    assert result.exit_code == 1
    assert "identical: no" in result.output


def test_a_file_or_pipe_gets_plain_text():
    assert "\x1b" not in run_demo()


def test_a_terminal_gets_colour_unless_it_wants_none():
    assert COLOUR.search(run_demo(FORCE_COLOR="1", TERM="xterm"))
    assert not COLOUR.search(run_demo(FORCE_COLOR="1", TERM="xterm", NO_COLOR="1"))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_installed_script_runs_the_demo(encoding: str):
    done = run_process(Path(sys.executable).with_name("holdfast"), "demo", PYTHONIOENCODING=encoding)
    assert done.returncode == 0
    assert done.stdout.count(IDENTICAL) == 6
    assert done.stderr == ""


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_a_missing_extra_names_the_command_that_installs_it(missing: str):
    program = f"import sys; sys.modules[{missing!r}] = None; from holdfast.cli import main; main()"
    done = run_process(sys.executable, "-c", program)
    assert done.returncode == 1
    assert f"holdfast: {missing}" in done.stderr
    assert "pip install 'holdfast[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
