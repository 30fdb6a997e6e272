"""Every code block of README and of the docs runs, and prints what it says it prints.

A ``python`` block is a program, a ``python test`` block a file for pytest, and a ``console`` block a session in which
each line that begins with "$ " is a command. A ``text`` block behind a program is its output. A ``yaml`` block holds
the options of a manager. What a reader does once, and no test repeats, such as installing, stands in an ``sh`` block.
Code in any other form is refused, as nothing would run it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import ContextManager

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
MOMENT = re.compile(r"\b1\d{12}_")
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
# What tests/test_cli_docs.py runs.
INDENTED_SESSION = re.compile(r"^    \$ [^\n]*\n(?:    [^\n]*\n)*", re.MULTILINE)
# Fences that are indented, quoted, of tildes, or left open; indented code; and code in HTML.
STRAY = re.compile(r"^(?:[ \t>]*(?:```|~~~)| {4}|\t|[ \t>]*<(?:pre|code)\b|[ ]{0,3}>[ ]?(?: {4}|\t)).*", re.MULTILINE)
# What an sh block may hold.
ONCE = ("cd ", "export ", "git clone ", "make ", "pip install ", "python -m http.server ")
SEVERAL_COMMANDS = re.compile(r"[&;|`]|\$\(")


def blocks(*languages: str, others: bool = False) -> list[object]:
    """The blocks in these languages, or with *others* those in any but these."""
    texts = [(page, page.read_text(encoding="utf-8")) for page in PAGES]
    found = [(page, text, match) for page, text in texts for match in BLOCK.finditer(text)]
    return [
        pytest.param(*match.groups(), id=f"{page.name}:{text[: match.start()].count(chr(10)) + 1}")
        for page, text, match in found
        if (match[1] in languages) != others
    ]


def stray_code(page: str, text: str) -> list[str]:
    """The lines of code that no test finds."""
    left = BLOCK.sub("", text)
    # A fence that is left open swallows the opening of the next.
    swallowed = [line for match in BLOCK.finditer(text) for line in re.findall(r"^```.*", match[2], re.MULTILINE)]
    return swallowed + STRAY.findall(INDENTED_SESSION.sub("", left) if page == "cli.md" else left)


def is_done_once(line: str) -> bool:
    """Whether an ``sh`` block may hold this line."""
    return line.startswith(ONCE) and SEVERAL_COMMANDS.search(line) is None


@pytest.fixture(scope="module")
def environment(s3_server) -> dict[str, str]:
    s3_server.create_bucket("my-agent-artifacts")
    return os.environ | {
        "AWS_ACCESS_KEY_ID": s3_server.access_key,
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key,
        "AWS_DEFAULT_REGION": s3_server.region,
        "AWS_ENDPOINT_URL_S3": s3_server.endpoint_url,
    }


@pytest.mark.parametrize(("language", "code", "output"), blocks("yaml", "console", "sh", others=True))
def test_block(language, code, output, tmp_path, environment):
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


@pytest.mark.parametrize(("language", "session", "output"), blocks("console"))
def test_session(language, session, output, tmp_path, environment):
    path = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    commands = COMMAND.findall(session)
    assert session.startswith("$ ")
    assert output is None, "what a session prints stands in its own block"
    for command, expected in commands:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=tmp_path,
            env=environment | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert MOMENT.sub("<ms>_", done.stdout).rstrip() == MOMENT.sub("<ms>_", expected).rstrip()


@pytest.mark.parametrize(("language", "lines", "output"), blocks("sh"))
def test_what_is_not_run_is_done_once_by_a_reader(language, lines, output):
    assert [line for line in lines.splitlines() if not is_done_once(line)] == []
    assert output is None, "what is not run prints nothing that could be checked"


@pytest.mark.parametrize("line", ["rm -r artifacts", "make test && rm -r x", "make a; rm x", "cd $(ls)", "make | sh"])
def test_commands_that_nobody_checks_are_refused(line):
    assert not is_done_once(line)


@pytest.mark.parametrize(("language", "options", "output"), blocks("yaml"))
def test_options_in_yaml_are_accepted(language, options, output):
    yaml = pytest.importorskip("yaml")
    ContextManager.from_config(yaml.safe_load(options))
    assert output is None, "options print nothing"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_code_escapes_the_tests(page):
    assert stray_code(page.name, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "stray",
    [
        "- a list\n\n  ```python\n  1 / 0\n  ```\n",
        "~~~python\n1 / 0\n~~~\n",
        "> ```python\n> 1 / 0\n> ```\n",
        "So:\n\n    1 / 0\n",
        "So:\n\n\t1 / 0\n",
        ">     1 / 0\n",
        "```python\n1 / 0\n",
        "```python\n1 / 0\n  ```\n",
        "<pre>1 / 0</pre>\n",
        "    Traceback\n    $ holdfast store ls\n",
    ],
)
def test_code_that_no_test_would_find_is_told(stray):
    assert stray_code("page.md", stray)
    assert stray_code("cli.md", stray)
    assert stray_code("page.md", f"```python\n1\n```\n\n{stray}\n```python\n1\n```\n")


def test_what_the_tests_find_is_no_stray_code():
    assert stray_code("page.md", "# Title\n\n- a list\n  goes on\n\n```python\nif 1:\n    2\n```\n") == []
    assert stray_code("cli.md", "So:\n\n    $ holdfast store ls\n    nothing\n\nAnd on.\n") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", BLOCK.sub("", page.read_text(encoding="utf-8"))):
        assert (page.parent / target).exists(), target


def test_a_newcomer_sees_the_program_and_the_commands_on_the_first_screen():
    first_screen = "\n".join(README.read_text(encoding="utf-8").splitlines()[:50])
    for expected in ("```python", "pip install", "make demo", "make test"):
        assert expected in first_screen
