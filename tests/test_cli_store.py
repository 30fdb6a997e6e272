"""``holdfast store``, on directories and on a real S3 server, in this process and as a real program."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from holdfast import FileStorage, S3Storage, ScopedStorage
from holdfast.cli import locations
from holdfast.cli.commands import holdfast
from holdfast.cli.listing import Amount, aligned
from holdfast.cli.quantities import duration_text, parse_duration, parse_size
from holdfast.cli.terminal import each, printable, tracked
from holdfast.errors import InvalidValueError, StorageAccessError
from holdfast.eviction import EvictingStorage, in_chain, new_chain

NOW = time.time()
DAY = 86_400.0
DOCS = (Path(__file__).parent.parent / "docs" / "cli.md").read_text(encoding="utf-8")
HOSTILE = "a/b [red]\x1b[31m\x9b31m\u202e\n"
PROGRAM = Path(sys.executable).with_name("holdfast")

pytestmark = pytest.mark.extended


def run(*arguments: str | Path, **environment: str | None) -> Result:
    runner = CliRunner(env={"COLUMNS": "80", **environment})
    return runner.invoke(holdfast, ["store", *map(str, arguments)])


def run_well(*arguments: str | Path, **environment: str | None) -> str:
    result = run(*arguments, **environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def run_process(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([PROGRAM, "store", *arguments], capture_output=True, timeout=60, **options)


def run_with(storage: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the program on a *storage* of another kind, which is the body of a class."""
    script = f"""
        import os, signal
        from holdfast import FileStorage
        from holdfast.cli import locations, main

        # Whoever started the tests in the background may have had interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)

        class Odd(FileStorage):
            calls = 0
            {textwrap.indent(textwrap.dedent(storage).strip(), " " * 12).strip()}

        locations.FileStorage = Odd
        main()
    """
    command = [sys.executable, "-c", textwrap.dedent(script), "store", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def run_on_a_terminal(*arguments: str | Path) -> str:
    """Run the program with a terminal as its standard output and error."""
    leader, follower = pty.openpty()
    with subprocess.Popen([PROGRAM, "store", *arguments], stdout=follower, stderr=follower) as process:
        os.close(follower)
        output = b""
        while chunk := _read(leader):
            output += chunk
        process.wait(60)
    os.close(leader)
    return output.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux's way to say that the other side is closed
        return b""


def store_at(folder: Path, age: float, key: str, content: bytes, content_type: str = "text/plain") -> str:
    storage = FileStorage(folder, clock=lambda: NOW - age)
    return asyncio.run(storage.store(key, content, content_type))


def store_of_a_wrong_size(folder: Path, content: bytes) -> str:
    """Store something of ten bytes, and change it to *content* behind the storage's back, long ago."""
    reference = store_at(folder, DAY, "odd/key", b"0123456789")
    Path(reference).write_bytes(content)
    os.utime(reference, (NOW - DAY, NOW - DAY))
    return reference


def store_chain(folder: Path, ages: list[float], wrap: Callable[[FileStorage], Any] | None = None) -> list[str]:
    wrap = wrap or (lambda inner: EvictingStorage(inner, chains=True))

    async def stored() -> list[str]:
        chain, references = new_chain(), []
        for age in ages:
            storage = wrap(FileStorage(folder, clock=lambda age=age: NOW - age))
            with in_chain(chain):
                references.append(await storage.store("key", b"x"))
        return references

    return asyncio.run(stored())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def references(folder: Path) -> list[str]:
    """A store with three entries: ten days, a day and an hour old."""
    return [
        store_at(folder, 10 * DAY, "old", b"x" * 5_000),
        store_at(folder, DAY, "data", b'{"a": 1}', "application/json"),
        store_at(folder, 3_600, "image", bytes(range(256)), "image/png"),
    ]


@pytest.fixture
def s3(s3_server, open_s3, monkeypatch) -> str:
    """The location of a store with two entries: ten days old, and new."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret_key)
    monkeypatch.setenv("AWS_DEFAULT_REGION", s3_server.region)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server.endpoint_url)
    asyncio.run(open_s3(clock=lambda: NOW - 10 * DAY).store("old", b"x" * 5_000))
    asyncio.run(open_s3(clock=lambda: NOW).store("new/ü", b'{"a": 1}', "application/json"))
    return f"s3://{open_s3.keywords['bucket']}/{open_s3.keywords['prefix']}"


def references_in(folder: Path) -> list[str]:
    async def listed() -> list[str]:
        return [entry.reference async for entry in FileStorage(folder).entries()]

    return sorted(asyncio.run(listed()))


def all_commands(group: click.Group = holdfast, path: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name, command in group.commands.items():
        is_group = isinstance(command, click.Group)
        found |= all_commands(command, f"{path}{name} ") if is_group else {f"{path}{name}": command}
    return found


ON_ANY_LOCATION = [["ls"], ["du"], ["check"], ["cat", "x"], ["rm", "x"], ["gc", "--idle", "1d"]]


class TestEveryCommand:
    @pytest.mark.parametrize(("path", "command"), all_commands().items())
    def test_has_help_and_a_section_in_the_docs(self, path, command):
        help_text = CliRunner().invoke(holdfast, [*path.split(), "--help"]).output
        section = DOCS.partition(f"\n## `holdfast {path}`\n")[2].partition("\n## ")[0]
        assert command.help
        assert section
        for option in (parameter for parameter in command.params if isinstance(parameter, click.Option)):
            assert option.help
            assert option.opts[0] in help_text
            assert option.opts[0] in section or option.opts[0] in ("--endpoint-url", "--region")

    @pytest.mark.parametrize("arguments", ON_ANY_LOCATION)
    def test_says_in_one_line_that_a_location_does_not_exist(self, tmp_path, arguments):
        command, *rest = arguments
        for missing in (tmp_path / "typo", tmp_path / "file"):
            (tmp_path / "file").write_text("in the way")
            result = run(command, missing, *rest)
            assert result.exit_code == 1
            assert re.fullmatch(r"Error: .*(does not exist|is not a directory); LOCATION is .*\n", result.output)
        assert [path.name for path in tmp_path.iterdir()] == ["file"]

    @pytest.mark.parametrize("arguments", ON_ANY_LOCATION)
    def test_says_in_one_line_that_a_bucket_does_not_exist(self, s3, arguments):
        command, *rest = arguments
        result = run(command, "s3://no-such-bucket/prefix", *rest)
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        assert result.stderr.startswith("Error: ")
        assert result.stderr.count("\n") == 1

    def test_says_that_credentials_are_missing(self, s3, monkeypatch):
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        result = run("ls", s3)
        assert result.exit_code == 1
        assert re.fullmatch(r"Error: .* set AWS_ACCESS_KEY_ID .*\n", result.stderr)

    def test_says_how_to_install_what_s3_needs(self):
        script = "import sys; sys.modules['boto3'] = None; from holdfast.cli import main; main()"
        command = [sys.executable, "-c", script, "store", "ls", "s3://bucket/prefix"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert done.stderr == "Error: boto3 is not installed; run: pip install 'holdfast[s3]'\n"

    @pytest.mark.parametrize("url", ["localhost:9000", "http://bad host", "http://[::1", "http://"])
    def test_refuses_an_endpoint_that_is_none(self, url):
        result = run("ls", "s3://bucket/prefix", "--endpoint-url", url)
        assert result.exit_code == 1
        assert "--endpoint-url looks like http://host:port" in result.stderr
        assert result.stderr.count("\n") == 1

    @pytest.mark.parametrize("url", ["http://[::1", "localhost:9000", "http://bad host"])
    @pytest.mark.parametrize("command", ["ls", "check"])
    def test_says_in_one_line_that_the_configured_endpoint_is_none(self, s3, monkeypatch, url, command):
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        result = run(command, s3)
        assert result.exit_code == 1
        assert re.fullmatch(r"Error: cannot .* check AWS_PROFILE, the region, AWS_ENDPOINT_URL_S3 .*\n", result.stderr)

    @pytest.mark.parametrize(("name", "value"), [("AWS_PROFILE", "typo"), ("AWS_REGION", "not a region")])
    def test_says_that_the_configuration_is_wrong_and_not_the_network(self, s3, monkeypatch, name, value):
        monkeypatch.setenv(name, value)
        result = run("ls", s3)
        assert result.exit_code == 1
        assert re.fullmatch(r"Error: cannot .* check AWS_PROFILE, .*\n", result.stderr)

    def test_says_that_a_configuration_cannot_be_read(self, s3, monkeypatch, tmp_path):
        (tmp_path / "config").write_text("[broken")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
        assert re.fullmatch(r"Error: cannot .* check AWS_PROFILE, .*\n", run("ls", s3).stderr)

    def test_says_that_a_server_is_down(self, s3):
        result = run("ls", s3, "--endpoint-url", "http://127.0.0.1:9")
        assert re.fullmatch(r"Error: cannot .* check that the endpoint is up .*\n", result.stderr)

    def test_refuses_no_location(self):
        result = run("ls", "")
        assert (result.exit_code, result.stderr) == (
            1,
            "Error: LOCATION is a directory or s3://bucket/prefix, got ''\n",
        )

    def test_tells_what_is_forbidden_from_what_does_not_exist(self, folder, monkeypatch):
        def forbid(path, *_, **__):
            raise PermissionError(13, "Permission denied", path)

        monkeypatch.setattr(locations, "os", SimpleNamespace(stat=forbid))
        assert "cannot be reached: Permission denied; LOCATION is" in run("ls", folder).stderr

    @pytest.mark.parametrize("command", ["ls", "du", "--help", "cat"])
    def test_says_in_one_line_that_the_output_is_full(self, folder, references, command):
        rest = [folder, references[0]][: 2 if command == "cat" else 1]
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "store", command, *rest], stdout=full, stderr=subprocess.PIPE, timeout=60)
        assert (done.returncode, done.stderr) == (1, b"holdfast: cannot write the output: No space left on device\n")

    @pytest.mark.parametrize("command", ["ls", "du", "cat"])
    def test_is_quiet_if_the_output_is_closed(self, folder, references, command):
        rest = f"'{references[0]}'" if command == "cat" else ""
        line = f"'{PROGRAM}' store {command} '{folder}' {rest} >&-"
        done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")

    @pytest.mark.parametrize("location", ["s3://", "s3:///prefix", "s3://bucket/a/../b", "s3://bucket/a//b"])
    def test_refuses_an_s3_location_that_is_none(self, location):
        result = run("ls", location)
        assert result.exit_code == 1
        assert re.fullmatch(r"Error: (bucket|prefix) must be .*\n", result.stderr)


class TestLs:
    def test_lists_the_oldest_first(self, folder, references):
        headline, *rows = run_well("ls", folder).splitlines()
        assert headline.split("  ")[0] == "stored"
        assert [row.split()[-1] for row in rows] == references
        assert re.search(r"^10d ago +10d ago +5\.0 kB  text/plain +old +/", rows[0])

    @pytest.mark.parametrize(
        ("options", "keys"),
        [
            ([], ["old", "data", "image"]),
            (["--reverse"], ["image", "data", "old"]),
            (["--sort", "size"], ["old", "image", "data"]),
            (["--sort", "used"], ["data", "image", "old"]),
            (["--sort", "size", "--limit", "2"], ["old", "image"]),
            (["-r", "-n", "1"], ["image"]),
        ],
    )
    def test_sorts_and_limits(self, folder, references, options, keys):
        asyncio.run(FileStorage(folder).retrieve(references[0]))
        lines = run_well("ls", folder, "--json", *options).splitlines()
        assert [json.loads(line)["key"] for line in lines] == keys

    def test_knows_no_reverse_of_no_order(self, folder, references):
        result = run("ls", folder, "--sort", "none", "--reverse")
        assert result.exit_code == 2
        assert "--reverse needs an order" in result.output

    def test_cuts_long_keys_and_types_in_pipes_too(self, folder):
        store_at(folder, DAY, "k" * 1_000, b"x", f"text/{'t' * 200}")
        _, row = run_well("ls", folder).splitlines()
        assert "k" * 99 + "…" in row
        assert "t" * 94 + "…" in row

    def test_ends_in_one_line_when_it_is_interrupted(self, folder, references):
        interrupted = """
            async def entries(self):
                os.kill(os.getpid(), signal.SIGINT)
                async for entry in super().entries():
                    yield entry
        """
        done = run_with(interrupted, "ls", folder)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.strip() == "Aborted!"

    def test_streams_in_no_order(self, folder, references):
        lines = run_well("ls", folder, "--json", "--sort", "none").splitlines()
        assert {json.loads(line)["reference"] for line in lines} == set(references)
        assert len(run_well("ls", folder, "--sort", "none", "-n", "2").splitlines()) == 3

    def test_json_is_exact(self, folder):
        reference = store_at(folder, DAY, HOSTILE, b"x", "text/csv; charset=utf-8")
        stored_at = int((NOW - DAY) * 1000) / 1000
        assert json.loads(run_well("ls", folder, "--json")) == {
            "reference": reference,
            "key": HOSTILE,
            "content_type": "text/csv; charset=utf-8",
            "size": 1,
            "stored_at": stored_at,
            "last_used": stored_at,
        }

    def test_shows_hostile_names_without_obeying_them(self, folder):
        store_at(folder, DAY, HOSTILE, b"x")
        (folder / "1700000000000_1_[bold]\x9b31m.txt").write_bytes(b"x")
        output = run_well("ls", folder)
        assert r"a/b [red]\x1b[31m\x9b31m\u202e\n" in output
        assert r"1700000000000_1_[bold]\x9b31m.txt" in output
        assert not set("\x1b\x9b\u202e") & set(output)

    def test_says_that_nothing_is_there(self, folder):
        folder.mkdir()
        result = run("ls", folder)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == f"nothing is stored in {folder}\n"

    def test_spells_out_what_the_output_cannot_encode(self, folder):
        store_at(folder, DAY, "ü", b"x")
        done = run_process("ls", folder, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0
        assert b"\\xfc" in done.stdout

    def test_never_cuts_a_reference(self, tmp_path):
        folder = tmp_path / "a-directory-with-a-long-name" / "that-alone-is-wider-than-a-terminal-usually-is"
        reference = store_at(folder, DAY, "k" * 100, b"x", "application/vnd.openxmlformats-officedocument")
        assert reference in run_well("ls", folder)
        on_a_terminal = run_on_a_terminal("ls", folder)
        assert reference in on_a_terminal
        assert "k" * 27 + "…" in on_a_terminal

    def test_is_quiet_when_the_reader_has_seen_enough(self, folder):
        folder.mkdir()
        for number in range(5_000):
            (folder / f"1700000000000_{number}_key.txt").write_bytes(b"")
        command = f"'{PROGRAM}' store ls '{folder}' | head -n 2"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
        assert len(done.stdout.splitlines()) == 2
        assert done.stderr == ""

    def test_of_a_damaged_entry_warns_without_obeying_it(self, folder):
        name = "1700000000000_1_\x9b31m.txt"
        folder.mkdir()
        (folder / name).write_bytes(b"x")
        (folder / f".{name}.meta").write_text("{")
        result = run("ls", folder)
        assert result.exit_code == 0
        assert result.stderr.startswith("Warning: ")
        assert "\x9b" not in result.output

    def test_lists_a_bucket(self, s3):
        old, new = (json.loads(line) for line in run_well("ls", s3, "--json").splitlines())
        assert (old["key"], old["size"], old["content_type"]) == ("old", 5_000, "text/plain")
        assert (new["key"], new["reference"].startswith(f"{s3}/")) == ("new/ü", True)
        assert run_well("ls", f"{s3}/", "--region", "us-east-1").count(f"{s3}/") == 2

    def test_finds_a_server_by_the_option(self, s3, s3_server, monkeypatch):
        monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
        assert run_well("ls", s3, "--endpoint-url", s3_server.endpoint_url).count(f"{s3}/") == 2


class TestCat:
    def test_writes_the_very_bytes(self, folder, references):
        assert run_process("cat", folder, references[2]).stdout == bytes(range(256))
        assert run("cat", folder, Path(references[2]).name).stdout_bytes == bytes(range(256))

    def test_writes_large_contents_part_by_part(self, folder):
        content = os.urandom(20_000_000)
        reference = store_at(folder, DAY, "large", content, "application/zip")
        assert run_process("cat", folder, reference).stdout == content

    @pytest.mark.parametrize(
        ("given", "expected"),
        [("0-5", b"\0\1\2\3\4"), ("250-", bytes(range(250, 256))), ("7-7", b""), ("255-999", b"\xff"), ("999-", b"")],
    )
    def test_writes_a_range(self, folder, references, given, expected):
        assert run("cat", folder, references[2], "--range", given).stdout_bytes == expected

    @pytest.mark.parametrize("given", ["", "5", "9-5", "-5", "a-b", "1-2-3", "٣-٤"])
    def test_refuses_a_range_that_is_none(self, folder, references, given):
        result = run("cat", folder, references[2], "--range", given)
        assert result.exit_code == 2
        assert "0-1000 or 1000-" in result.output

    @pytest.mark.parametrize("reference", ["never", "1700000000000_1_never.txt", "../../etc/passwd", "\x1b[31m", ""])
    def test_says_that_a_reference_leads_to_nothing(self, folder, references, reference):
        result = run("cat", folder, reference)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert re.fullmatch(r"Error: reference not found: .*\n", result.stderr)
        assert "\x1b" not in result.output

    def test_is_quiet_when_the_reader_has_seen_enough(self, folder):
        reference = store_at(folder, DAY, "large", os.urandom(20_000_000), "application/zip")
        command = f"'{PROGRAM}' store cat '{folder}' '{reference}' | head -c 5"
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=60)
        assert len(done.stdout) == 5
        assert done.stderr == b""

    def test_keeps_a_terminal_from_commands_in_a_content(self, folder, references):
        hostile = store_at(folder, DAY, "hostile", b"text \x1b]0;owned\x07")
        for reference in (references[2], hostile):
            output = run_on_a_terminal("cat", folder, reference)
            assert "add --force" in output
            assert "\x1b" not in output
        assert "\x1b]0;owned" in run_on_a_terminal("cat", folder, hostile, "--force")
        assert '{"a": 1}' in run_on_a_terminal("cat", folder, references[1])

    def test_reads_a_bucket(self, s3):
        reference = json.loads(run_well("ls", s3, "--json", "-r", "-n", "1"))["reference"]
        assert run("cat", s3, reference).stdout_bytes == b'{"a": 1}'
        assert run("cat", s3, reference, "--range", "2-3").stdout_bytes == b"a"

    def test_counts_as_a_use_in_a_bucket_too(self, s3):
        reference = json.loads(run_well("ls", s3, "--json", "-n", "1"))["reference"]
        assert run("cat", s3, reference).exit_code == 0
        assert json.loads(run_well("ls", s3, "--json", "-n", "1"))["last_used"] > NOW - DAY
        assert run_well("gc", s3, "--idle", "7d").startswith("freed 0 entries")

    def test_reads_what_may_only_be_read(self, s3, monkeypatch):
        def refuse(*_):
            return _fail()

        monkeypatch.setattr(S3Storage, "touch", refuse)
        reference = json.loads(run_well("ls", s3, "--json", "-n", "1"))["reference"]
        result = run("cat", s3, reference)
        assert (result.exit_code, result.stdout_bytes) == (0, b"x" * 5_000)
        assert result.stderr == "Warning: this does not count as a use: injected fault\n"


class TestRm:
    def test_removes_and_says_what_was_freed(self, folder, references):
        output = run_well("rm", folder, references[0], Path(references[1]).name)
        assert f"removed {references[0]}\n" in output
        assert output.endswith("freed 2 entries, 5.0 kB\n")
        assert references_in(folder) == [references[2]]

    def test_removes_the_others_if_one_leads_to_nothing(self, folder, references):
        result = run("rm", folder, references[0], "1700000000000_1_never.txt", references[1])
        assert result.exit_code == 1
        assert result.stderr.startswith("Error: reference not found: '1700000000000_1_never.txt' (")
        assert result.stdout.endswith("freed 2 entries, 5.0 kB\n")
        assert references_in(folder) == [references[2]]

    def test_counts_a_reference_once(self, folder, references):
        assert run_well("rm", folder, references[0], references[0]).endswith("freed 1 entry, 5.0 kB\n")

    def test_counts_an_entry_once_however_it_is_named(self, folder, references):
        path = Path(references[0])
        output = run_well("rm", folder, references[0], path.name, path.stem)
        assert output == f"removed {references[0]}\nfreed 1 entry, 5.0 kB\n"

    def test_takes_the_whole_chain(self, folder, references):
        chain = store_chain(folder, [DAY, DAY, DAY])
        planned = run_well("rm", folder, chain[1], chain[2], "--dry-run")
        assert set(chain) < set(references_in(folder))
        output = run_well("rm", folder, chain[1], chain[2])
        assert output.endswith("freed 3 entries, 3 bytes, 1 of them as parts of chains\n")
        assert planned.replace("would remove", "removed").replace("would free", "freed") == output
        assert references_in(folder) == sorted(references)

    def test_leaves_the_rest_of_a_chain_if_told_so(self, folder):
        chain = store_chain(folder, [DAY, DAY, DAY])
        assert run_well("rm", folder, chain[1], "--alone").endswith("freed 1 entry, 1 byte\n")
        assert references_in(folder) == sorted([chain[0], chain[2]])

    @pytest.mark.parametrize("content", [b"01234", b"0123456789 and more"])
    @pytest.mark.parametrize("options", [[], ["--alone"]])
    def test_removes_what_is_of_a_wrong_size(self, folder, references, content, options):
        reference = store_of_a_wrong_size(folder, content)
        assert f"would remove {reference}" in run_well("rm", folder, Path(reference).name, "--dry-run", *options)
        assert f"removed {reference}" in run_well("rm", folder, reference, *options)
        assert not Path(reference).exists()
        assert run_well("check", folder).endswith("nothing is wrong\n")

    def test_removes_nothing_of_a_wrong_size_elsewhere(self, tmp_path, folder, references):
        reference = store_of_a_wrong_size(tmp_path / "elsewhere", b"01234")
        (folder / Path(reference).name).write_bytes(b"another")
        result = run("rm", folder, reference)
        assert result.exit_code == 1
        assert Path(reference).exists()
        assert (folder / Path(reference).name).exists()

    def test_removes_nothing_when_it_runs_dry(self, folder, references):
        output = run_well("rm", folder, "--dry-run", *references)
        assert output.count("would remove /") == 3
        assert output.endswith("would free 3 entries, 5.3 kB\n")
        assert references_in(folder) == sorted(references)

    def test_needs_a_reference(self, folder, references):
        assert run("rm", folder).exit_code == 2

    def test_goes_on_if_the_disk_refuses_one(self, folder, references, refusing):
        refusing(references[1])
        result = run("rm", folder, *references)
        assert result.exit_code == 1
        assert result.stderr == "Error: injected fault\n"
        assert references_in(folder) == [references[1]]

    def test_removes_from_a_bucket(self, s3):
        listed = [json.loads(line)["reference"] for line in run_well("ls", s3, "--json").splitlines()]
        result = run("rm", s3, *listed, f"{s3}/1700000000000_1_never")
        assert result.exit_code == 1
        assert result.stdout.endswith("freed 2 entries, 5.0 kB\n")
        assert run_well("ls", s3) == ""


class TestDu:
    def test_adds_up(self, folder, references):
        store_at(folder, 2 * DAY, "more", b"x" * 100, "text/plain; charset=utf-8")
        total, _, *rest = run_well("du", folder).splitlines()
        assert total == "4 entries, 5.4 kB"
        assert [" ".join(line.split()) for line in rest] == [
            "by type",
            "text/plain 2 5.1 kB",
            "image/png 1 256 bytes",
            "application/json 1 8 bytes",
            "",
            "by age",
            "under 1h 0 0 bytes",
            "1h to 1d 1 256 bytes",
            "1d to 7d 2 108 bytes",
            "7d to 30d 1 5.0 kB",
            "over 30d 0 0 bytes",
        ]

    def test_json_is_exact(self, folder, references):
        found = json.loads(run_well("du", folder, "--json"))
        assert found["total"] == {"entries": 3, "bytes": 5_264}
        assert found["by_type"]["image/png"] == {"entries": 1, "bytes": 256}
        assert found["by_age"]["7d to 30d"] == {"entries": 1, "bytes": 5_000}

    def test_adds_up_nothing(self, folder):
        folder.mkdir()
        assert run_well("du", folder).startswith("0 entries, 0 bytes\n")

    def test_counts_what_is_of_a_wrong_size_apart(self, folder, references):
        store_of_a_wrong_size(folder, b"01234")
        store_of_a_wrong_size(folder, b"0123456789 and more")
        first, second, *_ = run_well("du", folder).splitlines()
        assert first == "3 entries, 5.3 kB"
        assert second == "and 2 entries, 24 bytes of a wrong size; `holdfast store check` tells more"
        assert json.loads(run_well("du", folder, "--json"))["wrong_size"] == {"entries": 2, "bytes": 24}

    def test_adds_up_a_bucket(self, s3):
        assert run_well("du", s3).startswith("2 entries, 5.0 kB\n")


class TestCheck:
    def damage(self, folder: Path) -> None:
        (folder / ".1700000000000_1_[red]dead.txt.part").write_bytes(b"hal")
        (folder / "1700000000000_2_key.x-odd").write_bytes(b"x")
        (folder / "README").write_text("a neighbour")

    def test_of_a_whole_store_finds_nothing(self, folder, references):
        assert run_well("check", folder) == "checked 3 entries, 5.3 kB: nothing is wrong\n"

    def test_tells_what_it_finds(self, folder, references):
        self.damage(folder)
        result = run("check", folder)
        assert result.exit_code == 1
        first, second, summary = result.stdout.splitlines()
        assert re.fullmatch(r"fixable +leftover +\.1700000000000_1_\[red\]dead\.txt\.part +the writer .* died", first)
        assert re.fullmatch(r"- +unknown type +1700000000000_2_key\.x-odd +nothing tells its type.*", second)
        expected = "checked 4 entries, 5.3 kB, and left 1 neighbour alone: 2 findings, 1 can be mended by --fix"
        assert summary == expected

    def test_mends_what_can_be_mended(self, folder, references):
        self.damage(folder)
        result = run("check", folder, "--fix")
        assert result.exit_code == 1
        assert result.stdout.splitlines()[0].startswith("fixed")
        assert result.stdout.endswith(": 2 findings, 1 fixed\n")
        (folder / "1700000000000_2_key.x-odd").unlink()
        assert run("check", folder).exit_code == 0
        assert references_in(folder) == sorted(references)

    def test_does_not_advise_what_was_tried_in_vain(self, folder, references, monkeypatch):
        self.damage(folder)
        monkeypatch.setattr("holdfast.storage.audit_files.sweep", lambda *_: None)
        result = run("check", folder, "--fix")
        assert result.stdout.startswith("resists  leftover")
        assert result.stdout.endswith(": 2 findings, 1 could not be mended now\n")

    def test_exits_well_if_all_could_be_mended(self, folder, references):
        (folder / ".1700000000000_1_dead.txt.part").write_bytes(b"hal")
        assert "1 fixed" in run_well("check", folder, "--fix")

    def test_json_is_exact(self, folder, references):
        self.damage(folder)
        result = run("check", folder, "--fix", "--json")
        assert [(each["kind"], each["fixed"]) for each in map(json.loads, result.stdout.splitlines())] == [
            ("leftover", True),
            ("unknown type", False),
        ]

    def test_shows_hostile_names_without_obeying_them(self, folder, references):
        (folder / "1700000000000_1_\x9b31m.x-odd").write_bytes(b"x")
        assert "\x9b" not in run("check", folder).output

    def test_of_a_bucket(self, s3):
        assert run_well("check", s3, "--fix") == "checked 2 entries, 5.0 kB: nothing is wrong\n"


class TestGc:
    def test_needs_a_limit(self, folder, references):
        result = run("gc", folder)
        assert result.exit_code == 2
        assert "name at least one limit: --max-age, --idle, --max-bytes or --max-entries" in result.output

    @pytest.mark.parametrize(
        ("options", "left"),
        [
            (["--max-age", "7d"], [1, 2]),
            (["--max-age", "1h30m"], [2]),
            (["--idle", "12h"], [2]),
            (["--max-entries", "2"], [1, 2]),
            (["--max-bytes", "300"], [1, 2]),
            (["--max-bytes", "5.1KB", "--max-entries", "1"], [2]),
            (["--max-age", "30d", "--max-bytes", "1GB"], [0, 1, 2]),
        ],
    )
    def test_deletes_what_is_beyond_the_limits(self, folder, references, options, left):
        planned = run_well("gc", folder, "--dry-run", *options)
        assert references_in(folder) == sorted(references)
        done = run_well("gc", folder, *options)
        assert references_in(folder) == sorted(references[index] for index in left)
        assert planned.replace("would free", "freed") == done

    def test_says_what_was_freed_by_which_limit_and_what_stays(self, folder, references):
        assert run_well("gc", folder, "--max-age", "7d", "--max-entries", "1").splitlines() == [
            "freed 2 entries, 5.0 kB",
            "  1 entry, 5.0 kB by --max-age 7d",
            "  1 entry, 8 bytes by --max-entries 1",
            "1 entry, 256 bytes stay",
        ]

    def test_spares_what_was_used_lately(self, folder, references):
        asyncio.run(FileStorage(folder).retrieve(references[0]))
        run_well("gc", folder, "--idle", "12h")
        assert references_in(folder) == sorted([references[0], references[2]])

    def test_spares_what_is_used_between_listing_and_deleting(self, folder, references, monkeypatch):
        class UsedMeanwhile(FileStorage):
            async def inspect(self, reference):
                if reference == references[0]:
                    await self.retrieve(reference)
                return await super().inspect(reference)

        monkeypatch.setattr(locations, "FileStorage", UsedMeanwhile)
        output = run_well("gc", folder, "--idle", "1h")
        assert "spared 1 entry, 5.0 kB, used meanwhile" in output
        assert references_in(folder) == [references[0]]

    def test_does_not_count_what_others_delete_meanwhile(self, folder, references, monkeypatch):
        class DeletedMeanwhile(FileStorage):
            async def inspect(self, reference):
                await self.delete(references[0])
                return await super().inspect(reference)

        monkeypatch.setattr(locations, "FileStorage", DeletedMeanwhile)
        assert run_well("gc", folder, "--max-age", "12h").startswith("freed 1 entry, 8 bytes\n")

    @pytest.mark.parametrize(
        "wrap",
        [
            lambda inner: EvictingStorage(inner, chains=True),
            lambda inner: ScopedStorage(EvictingStorage(inner, chains=True), "session"),
            lambda inner: EvictingStorage(ScopedStorage(inner, "session"), chains=True),
        ],
        ids=["evicting", "a scope of evicting", "evicting of a scope"],
    )
    def test_lets_chains_leave_whole_or_not_at_all(self, folder, wrap):
        old = store_chain(folder, [10 * DAY, 9 * DAY], wrap)
        fresh = store_chain(folder, [10 * DAY, DAY], wrap)
        run_well("gc", folder, "--max-age", "7d")
        assert not set(old) & set(references_in(folder))
        assert set(fresh) <= set(references_in(folder))

    def test_spares_a_chain_of_which_one_is_used_meanwhile(self, folder, monkeypatch):
        chain = store_chain(folder, [10 * DAY] * 3)

        class UsedMeanwhile(FileStorage):
            async def inspect(self, reference):
                if reference == chain[1]:
                    await self.retrieve(reference)
                return await super().inspect(reference)

        monkeypatch.setattr(locations, "FileStorage", UsedMeanwhile)
        assert "spared 3 entries" in run_well("gc", folder, "--max-age", "7d")
        assert references_in(folder) == sorted(chain)

    def test_goes_on_if_one_cannot_be_deleted(self, folder, references, refusing):
        refusing(references[0])
        result = run("gc", folder, "--max-age", "12h")
        assert result.exit_code == 1
        assert result.stderr == "Error: injected fault\n"
        assert result.stdout.startswith("freed 1 entry, 8 bytes\n")
        assert result.stdout.endswith("2 entries, 5.3 kB stay\n")

    @pytest.mark.parametrize(("method", "failed"), [("inspect", True), ("touch", False), ("delete", True)])
    def test_goes_on_whatever_holdfast_says_of_one(self, folder, references, monkeypatch, method, failed):
        odd = store_chain(folder, [10 * DAY] * 2)

        async def refuse(self, reference, *arguments):
            if reference in odd:
                raise InvalidValueError("odd")
            return await getattr(FileStorage, method)(self, reference, *arguments)

        monkeypatch.setattr(locations, "FileStorage", type("Odd", (FileStorage,), {method: refuse}))
        result = run("gc", folder, "--max-age", "12h")
        assert result.exit_code == failed
        assert ("Error: odd" in result.stderr) == failed
        assert references_in(folder) == sorted([references[2], *(odd if failed else [])])

    def test_goes_on_with_a_chain_in_which_it_was_killed(self, folder):
        chain = store_chain(folder, [10 * DAY] * 5)
        killed = """
            async def delete(self, reference):
                await super().delete(reference)
                os.kill(os.getpid(), signal.SIGKILL)
        """
        assert run_with(killed, "gc", folder, "--max-age", "9d12h").returncode == -signal.SIGKILL
        rest = set(chain) & set(references_in(folder))
        assert 0 < len(rest) < 5
        assert "spared" not in run_well("gc", folder, "--max-age", "30d", "--dry-run")
        lines = run_well("gc", folder, "--max-age", "30d").splitlines()
        amount = str(Amount(len(rest), len(rest)))
        assert lines[:2] == [f"freed {amount}", f"  {amount} of chains whose deletion was interrupted before"]
        assert not set(chain) & set(references_in(folder))

    def test_says_what_it_did_until_it_was_interrupted(self, folder):
        folder.mkdir()
        for index in range(1_000):
            (folder / f"1700000000000_{index}_key.txt").write_bytes(b"x")
        interrupted = """
            async def delete(self, reference):
                await super().delete(reference)
                Odd.calls += 1
                if Odd.calls == 40:
                    os.kill(os.getpid(), signal.SIGINT)
        """
        done = run_with(interrupted, "gc", folder, "--max-entries", "10")
        assert (done.returncode, done.stderr) == (130, "Error: interrupted; the next run goes on\n")
        told, gone = int(done.stdout.split()[1]), 1_000 - len(references_in(folder))
        assert 40 <= told <= gone <= told + 32
        assert run_well("gc", folder, "--max-entries", "10").endswith("10 entries, 10 bytes stay\n")

    def test_sweeps_contents_that_were_never_completed(self, folder, references):
        reference = store_of_a_wrong_size(folder, b"01234")
        assert "would remove 1 leftover of crashes" in run_well("gc", folder, "--idle", "30d", "--dry-run")
        assert "removed 1 leftover of crashes" in run_well("gc", folder, "--idle", "30d")
        assert not Path(reference).exists()
        assert references_in(folder) == sorted(references)

    def test_sweeps_what_crashes_left(self, folder, references):
        part = folder / ".1700000000000_1_dead.txt.part"
        part.write_bytes(b"hal")
        assert "would remove 1 leftover of crashes" in run_well("gc", folder, "--idle", "30d", "--dry-run")
        assert part.exists()
        assert "removed 1 leftover of crashes" in run_well("gc", folder, "--idle", "30d")
        assert not part.exists()

    def test_says_what_resists_the_sweep(self, folder, references, monkeypatch):
        (folder / ".1700000000000_1_dead.txt.part").mkdir()
        (folder / ".1700000000000_2_dead.txt.part").write_bytes(b"hal")
        monkeypatch.setattr("holdfast.storage.audit_files.sweep", lambda *_: None)
        result = run("gc", folder, "--idle", "30d")
        assert result.exit_code == 1
        assert "Error: cannot remove .1700000000000_2_dead.txt.part" in result.stderr

    def test_shows_its_progress_on_a_terminal_only(self, folder, references):
        assert "deleting" in run_on_a_terminal("gc", folder, "--max-age", "7d")
        done = run_process("gc", folder, "--max-age", "12h")
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\x1b" not in done.stdout

    def test_cleans_a_bucket(self, s3, open_s3):
        assert run_well("gc", s3, "--max-age", "7d").splitlines() == [
            "freed 1 entry, 5.0 kB",
            "  1 entry, 5.0 kB by --max-age 7d",
            "1 entry, 8 bytes stay",
        ]
        assert run_well("ls", s3).count(f"{s3}/") == 1

    @pytest.mark.parametrize("number", [1_000])
    def test_of_many_deletes_all(self, folder, number):
        folder.mkdir()
        for index in range(number):
            (folder / f"1700000000000_{index}_key.txt").write_bytes(b"x")
        assert run_well("gc", folder, "--max-entries", "10").endswith("10 entries, 10 bytes stay\n")
        assert len(references_in(folder)) == 10


class TestLifecycle:
    def test_prints_the_rule(self, s3):
        rule = json.loads(run_well("lifecycle", s3, "--max-age", "36h"))
        assert rule["Expiration"] == {"Days": 2}
        assert rule["Filter"]["Prefix"] == f"{s3.rpartition('/')[2]}/"

    def test_installs_the_rule(self, s3, client, bucket):
        result = run("lifecycle", s3, "--max-age", "7d", "--install")
        assert result.exit_code == 0, result.output
        rules = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        assert json.loads(result.stdout)["ID"] in [rule["ID"] for rule in rules]
        asyncio.run(S3Storage(bucket, s3.rpartition("/")[2]).remove_lifecycle_rule())

    def test_removes_the_rule(self, s3, client, bucket):
        rule = json.loads(run_well("lifecycle", s3, "--max-age", "7d", "--install"))
        assert f"no rule of holdfast for {s3} is in the bucket" in run_well("lifecycle", s3, "--remove")
        try:
            rules = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        except client.exceptions.ClientError:
            rules = []
        assert rule["ID"] not in [rule["ID"] for rule in rules]

    def test_advises_a_command_that_runs_for_a_directory(self, tmp_path):
        folder = tmp_path / "a directory"
        store_at(folder, 10 * DAY, "old", b"x")
        told = run("lifecycle", folder, "--max-age", "7d").stderr
        assert "only S3 has lifecycle rules" in told
        run_well(*shlex.split(told.partition("holdfast store ")[2]))
        assert references_in(folder) == []

    def test_is_not_for_whole_buckets(self, s3, bucket):
        for options in (["--max-age", "7d"], ["--remove"]):
            told = run("lifecycle", f"s3://{bucket}", *options).stderr
            assert f"name a LOCATION with a prefix, such as s3://{bucket}/agents" in told

    @pytest.mark.parametrize("options", [[], ["--install"], ["--remove", "--install"], ["--remove", "--max-age", "7d"]])
    def test_needs_an_age_or_is_to_be_removed(self, s3, options):
        assert run("lifecycle", s3, *options).exit_code == 2


class TestQuantities:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [
            ("90s", 90),
            ("15m", 900),
            ("12h", 43_200),
            ("7d", 604_800),
            ("2w", 1_209_600),
            ("1d12h", 129_600),
            ("1.5h", 5_400),
            (" 1W2D3H4M5S ", 788_645),
            ("0.5s", 0.5),
        ],
    )
    def test_durations(self, text, seconds):
        assert parse_duration(text) == seconds

    @pytest.mark.parametrize("text", ["", "7", "0s", "-1d", "1x", "12h1d", "1d 12h", "inf", "1e9s", "d", "١d", "1..5h"])
    def test_what_is_no_duration_is_told_what_is_one(self, text):
        with pytest.raises(InvalidValueError, match="90s, 15m, 12h, 7d, 2w or 1d12h"):
            parse_duration(text)

    @pytest.mark.parametrize(
        ("text", "size"),
        [
            ("1000000", 1_000_000),
            ("500KB", 500_000),
            ("2GB", 2 * 10**9),
            ("2G", 2 * 10**9),
            ("2M", 2_000_000),
            ("500k", 500_000),
            ("1.5GiB", 3 * 2**29),
            ("1 kib", 1024),
            ("7b", 7),
            ("3TB", 3 * 10**12),
            ("1MiB", 2**20),
        ],
    )
    def test_sizes(self, text, size):
        assert parse_size(text) == size

    @pytest.mark.parametrize("text", ["", "0", "-5", "0.5", "5XB", "KB", "1e9", "2X", "nan", "1,000"])
    def test_what_is_no_size_is_told_what_is_one(self, text):
        with pytest.raises(InvalidValueError, match=r"1000000, 500KB, 2GB or 1\.5GiB"):
            parse_size(text)

    @pytest.mark.parametrize("option", ["--max-age", "--idle", "--max-bytes"])
    def test_a_wrong_one_names_the_option(self, folder, references, option):
        result = run("gc", folder, option, "soon")
        assert result.exit_code == 2
        assert f"'{option}'" in result.output
        assert "looks like" in result.output

    @pytest.mark.parametrize("seconds", [1, 59, 60, 61, 3_600, 5_400, 86_399, 86_400, 129_600, 10_000_000])
    def test_durations_are_written_as_they_are_read(self, seconds):
        again = parse_duration(duration_text(seconds))
        assert again <= seconds
        assert duration_text(again) == duration_text(seconds)

    def test_what_is_not_yet_is_now(self):
        assert duration_text(-5) == "0s"


class TestTerminal:
    @pytest.mark.parametrize("text", ["plain", "ünïcödé", "[red]markup[/red]"])
    def test_what_is_printable_stays(self, text):
        assert printable(text) == text

    @pytest.mark.parametrize(
        "text", ["\x1b[31m", "\r", "\n", "\t", "\x9b", "\u202e", "\u200b", "\udcff", "\x7f", "\u2028"]
    )
    def test_what_is_not_is_spelt_out(self, text):
        assert printable(text).isascii()
        assert printable(text).isprintable()

    def test_columns_of_any_number_of_rows_are_aligned(self):
        lines = list(aligned((str(10**power), "x") for power in range(5) for _ in range(500)))
        assert len(lines) == 2_500
        assert lines[0] == "1   x"
        assert lines[-1] == "10000  x"

    def test_iterating_ends_what_it_began(self):
        ended = []

        async def numbers():
            try:
                for number in range(10):
                    yield number
            finally:
                ended.append(True)

        for number in tracked(each(numbers()), "counting"):
            if number == 3:
                break
        del number
        assert list(each(numbers())) == list(range(10))
        assert ended


@pytest.fixture
def refusing(monkeypatch) -> Callable[[str], None]:
    """Makes the deletion of one reference fail."""

    def refuse(refused: str) -> None:
        class Refusing(FileStorage):
            def delete(self, reference: str) -> Coroutine[Any, Any, None]:
                return _fail() if reference == refused else super().delete(reference)

        monkeypatch.setattr(locations, "FileStorage", Refusing)

    return refuse


async def _fail() -> None:
    raise StorageAccessError("injected fault")
