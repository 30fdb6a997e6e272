from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from holdfast.cli.commands import holdfast


def run(*arguments: str | Path, **environment: str | None) -> Result:
    runner = CliRunner(env={"COLUMNS": "80", "NO_COLOR": None, "FORCE_COLOR": None, **environment})
    return runner.invoke(holdfast, list(map(str, arguments)))


def run_process(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, env={**os.environ, **environment})


@pytest.mark.parametrize("name", sorted(holdfast.commands))
def test_every_command_has_help(name: str):
    command, result = holdfast.commands[name], run(name, "--help")
    assert result.exit_code == 0
    assert command.help
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert all(option.help for option in options)
    assert command.help.split(".")[0] in " ".join(result.output.split())


def test_the_group_has_help_that_names_every_command():
    result = run("--help")
    assert result.exit_code == 0
    assert holdfast.help
    assert all(name in result.output for name in holdfast.commands)


def test_the_version_is_that_of_the_installed_package():
    assert run("--version").output.strip().endswith(version("holdfast"))


@pytest.mark.parametrize("missing", ["click", "rich", "yaml"])
def test_a_missing_extra_names_the_command_that_installs_it(missing: str):
    program = f"import sys; sys.modules[{missing!r}] = None; from holdfast.cli import main; main()"
    done = run_process(sys.executable, "-c", program)
    assert done.returncode == 1
    assert f"holdfast: {missing}" in done.stderr
    assert "pip install 'holdfast[cli]'" in done.stderr
    assert "Traceback" not in done.stderr
