"""``holdfast replay`` and ``holdfast recommend``, in this process and as real programs."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from interrupts import heed_interrupts
from replaying import FILLER, chat

from holdfast.cli.commands import holdfast
from holdfast.replay import PRICES, policy_from

PROGRAM = Path(sys.executable).with_name("holdfast")
HOSTILE = "evil [red]\x1b[31m\x9b31m\u202e"
CHAT = chat([f"note {number}, of ORD-{7_000 + number}: {FILLER * 20}" for number in range(60)])


def run(command: str, *arguments: str | Path, **environment: str) -> Result:
    """Run a command in this process; -j 1 keeps it from beginning others."""
    runner = CliRunner(env={"COLUMNS": "100", **environment})
    return runner.invoke(holdfast, [command, "-j", "1", *map(str, arguments)])


def run_well(command: str, *arguments: str | Path, **environment: str) -> str:
    result = run(command, *arguments, **environment)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def figures(*arguments: str | Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run_well("replay", *arguments, "--json", "-"))
    return report


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path / "runs.jsonl", CHAT)


def written(path: Path, *chats: Any, names: str = "run-{}") -> Path:
    lines = (json.dumps({"id": names.format(number), "messages": each}) for number, each in enumerate(chats))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def row(output: str, label: str) -> list[str]:
    [line] = [line for line in output.splitlines() if line.strip().startswith(label)]
    return line.strip().removeprefix(label).split()


# What is shown


def test_two_policies_stand_side_by_side_unless_others_are_asked_for(file):
    output = run_well("replay", file, "--window", "8000")
    assert "1 recording, window of 8,000 tokens" in output
    assert row(output, "none")[-1] == "auto"
    assert row(output, "requests") == ["61", "61"]
    [unmanaged, managed] = row(output, "… above the window")
    assert (int(unmanaged) > 0, managed) == (True, "0")


def test_the_table_is_that_of_the_figures(file):
    arguments = (file, "--window", "8000", "-p", "none", "-p", "summarize", "-p", "truncate")
    output = run_well("replay", *arguments)
    totals = [policy["totals"] for policy in figures(*arguments)["policies"]]
    for label, name in (
        ("tokens sent", "tokens"),
        ("… in the largest one", "peak"),
        ("messages summarised", "summarised"),
    ):
        assert row(output, label) == [f"{each[name]:,}" for each in totals]


def test_with_a_dash_nothing_but_json_is_printed(file):
    report = figures(file, "--window", "8000")
    assert [policy["name"] for policy in report["policies"]] == ["none", "auto"]
    assert report["recordings"][0]["name"] == str(file)
    assert report["recordings"][0]["messages"] == len(CHAT)


def test_a_page_and_the_figures_are_written_where_they_are_asked_for(file, tmp_path):
    page, data = tmp_path / "page.html", tmp_path / "out.json"
    output = run_well("replay", file, "--html", page, "--json", data)
    assert page.read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert json.loads(data.read_text(encoding="utf-8"))["window"] == 100_000
    assert f"the page: {page}" in output
    assert {path.name for path in tmp_path.iterdir()} == {"page.html", "out.json", "runs.jsonl"}


@pytest.mark.parametrize("option", ["--html", "--json", "--save"])
def test_a_path_that_cannot_be_written_is_a_clear_error_before_any_work(option, file, tmp_path):
    command = "recommend" if option == "--save" else "replay"
    result = run(command, file, option, tmp_path / "no\x1b[31m" / "out")
    assert result.exit_code == 2
    assert re.search(r"Error: \S*no\\x1b\[31m/out cannot be written: there is no folder \S*no\\x1b", result.stderr)
    assert result.stdout == ""


def test_json_alone_goes_to_the_standard_output(file, tmp_path):
    result = run("replay", file, "--json", "-", "--html", tmp_path / "page.html")
    assert json.loads(result.stdout)["policies"]
    assert "the page: " in result.stderr


def test_a_run_that_ends_early_is_told_with_its_reason(tmp_path):
    huge = [{"role": "user", "content": "word " * 9_000}, {"role": "assistant", "content": "No."}]
    result = run("replay", written(tmp_path / "huge.jsonl", huge), "--window", "2000")
    assert "huge.jsonl under auto ended early, at request 1: " in result.stderr


@pytest.mark.parametrize("command", ["replay", "recommend"])
def test_no_figure_is_cut_where_there_is_no_terminal(command, file):
    narrow, wide = (run_well(command, file, "--window", "8000", COLUMNS=width) for width in ("30", "300"))
    assert re.findall(r"[\d,.$]+", narrow) == re.findall(r"[\d,.$]+", wide)
    assert "…" not in narrow.replace("… ", "")


def test_a_stream_that_knows_only_ascii_gets_other_characters_spelt_out(file):
    done = subprocess.run(
        [PROGRAM, "replay", file, "-j", "1"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "tokens sent" in done.stdout


def test_names_are_not_obeyed_by_a_terminal(tmp_path):
    policy = tmp_path / f"{HOSTILE}.json"
    policy.write_text('{"strategy": "auto"}', encoding="utf-8")
    good = written(tmp_path / f"{HOSTILE}.jsonl", CHAT[:3], CHAT[:3], names=f"{HOSTILE}\ud800{{}}")
    bad = tmp_path / f"{HOSTILE}bad.jsonl"
    bad.write_text("{broken", encoding="utf-8")
    result = run("replay", good, bad, "-p", policy, "-p", "none")
    printed = run("replay", good, bad, "-p", policy, "-p", "none", "--json", "-").stdout
    assert result.exit_code == 1
    for text in (result.stdout, result.stderr, printed):
        assert not {"\x1b", "\x9b", "\u202e"} & set(text)
        assert "evil [red]" in re.sub(r"\s+", " ", text)


# What is read


def test_forms_are_found_out_or_given(file, tmp_path):
    packed = tmp_path / "packed.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert [each["format"] for each in figures(file, packed)["recordings"]] == ["openai", "openai"]
    result = run("replay", file, "--format", "converse")
    assert result.exit_code == 1
    assert str(file) in result.stderr


def test_what_cannot_be_read_is_told_in_one_line_and_the_rest_runs(file, tmp_path):
    file.write_text(f"{file.read_text(encoding='utf-8')}{{broken\n", encoding="utf-8")
    result = run("replay", tmp_path / "gone.json", file, "--json", "-")
    assert result.exit_code == 1
    gone, broken = result.stderr.splitlines()
    assert gone == f"Error: {tmp_path / 'gone.json'}: it cannot be read: no such file or directory"
    assert broken.startswith(f"Error: {file}:2: ")
    report = json.loads(result.stdout)
    assert (len(report["recordings"]), len(report["unreadable"])) == (1, 2)
    assert report["unreadable"][1]["line"] == 2


@pytest.mark.parametrize("command", ["replay", "recommend"])
def test_where_nothing_can_be_read_the_last_line_says_so(command, tmp_path):
    result = run(command, tmp_path / "gone.json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == "Error: no recording could be replayed"
    assert len(result.stderr.splitlines()) == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--window", "999"), "999 is not in the range x>=1000"),
        (("--prices", "gpt-1"), "no prices are known for 'gpt-1'"),
        (("--prices", "input=x"), "own prices are dollars"),
        (("--prices", "input=1"), "the price cache_read is missing"),
        (("--prices", "input=1,cache_read=nan"), "the price cache_read must be dollars"),
        (("--prices", "input=1,cache_read=1,name=5"), "name of prices must be text"),
        (("--format", "yaml"), "'yaml' is not one of 'openai'"),
        ((), "Missing argument 'FILE...'"),
    ],
)
def test_what_is_not_understood_is_refused_at_once(arguments, words, file):
    result = run("replay", *arguments, *([file] if arguments else []))
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in re.sub(r"\s+", " ", result.stderr)


def test_a_policy_that_is_none_is_told_before_anything_runs(file):
    result = run("replay", file, "-p", "fast")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: policy must be one of none, auto, truncate, summarize")


def test_the_bill_is_that_of_the_prices_asked_for(file):
    for prices in ("input=4,cache_read=1,cache_write=5", "gpt-6-luna"):
        [policy] = figures(file, "--prices", prices, "-p", "none")["policies"]
        price = PRICES.get(prices)
        per_token = (4, 1, 5) if price is None else (price.input, price.cache_read, price.cache_write)
        totals = policy["totals"]
        assert totals["bill"]["uncached"] == pytest.approx(totals["tokens"] * per_token[0] / 1e6, abs=1e-6)
        cached = totals["cached"] * per_token[1] + totals["fresh"] * per_token[2]
        assert totals["bill"]["cached"] == pytest.approx(cached / 1e6, abs=1e-6)


# Recommendations


def test_the_chosen_policy_is_named_with_its_options_and_the_figures_of_all(file):
    output = run_well("recommend", file, "--window", "8000")
    [name] = re.findall(r"^ ▸ (\S+)", output, re.MULTILINE)
    assert f"{name}: the cheapest" in output
    assert "  strategy: auto\n" in output
    assert row(output, "none")[4] == "1"


def test_what_is_saved_is_a_policy_for_a_replay(file, tmp_path):
    saved = tmp_path / "best.yaml"
    output = run_well("recommend", file, "--window", "8000", "--save", saved)
    assert f"saved: {saved}" in output
    [mine] = figures(file, "--window", "8000", "-p", saved)["policies"]
    [name] = re.findall(r"^ ▸ (\S+)", output, re.MULTILINE)
    assert f"{mine['totals']['tokens']:,}" in row(output, f"▸ {name}")


def test_where_no_manager_is_best_that_can_be_saved_too(tmp_path):
    short, saved = written(tmp_path / "short.jsonl", CHAT[:3]), tmp_path / "best.yaml"
    assert "none: the cheapest; no value was used again that could be lost" in run_well(
        "recommend", short, "--save", saved
    )
    assert policy_from(str(saved)).config == {}
    nothing, mine = figures(short, "-p", "none", "-p", saved)["recordings"][0]["under"]
    assert nothing["requests"] == mine["requests"]


def test_where_none_fits_it_says_so(tmp_path):
    huge = [{"role": "user", "content": "word " * 9_000}, {"role": "assistant", "content": "No."}]
    result = run("recommend", written(tmp_path / "huge.jsonl", huge), "--window", "2000")
    assert "no policy fits this window; this one comes nearest" in result.stdout
    assert result.stderr.count("under auto ended early, at request 1: the context does not fit") == 1


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--json", "run.json"), "it is read from"),
        (("--html", "./run.json"), "it is read from"),
        (("--html", "link.json"), "it is read from"),
        (("--policy", "my.yaml", "--json", "my.yaml"), "it is read from"),
        (("--html", "-"), "only --json prints to the standard output"),
        (("--html", "same", "--json", "same"), "another option names it, too"),
    ],
)
def test_nothing_is_written_over_a_recording_or_over_another_output(options, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "run.json", CHAT)
    os.link("run.json", "link.json")
    Path("my.yaml").write_text("strategy: auto")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    result = run("replay", "run.json", *options)
    assert result.exit_code == 2
    assert f"cannot be written: {reason}" in " ".join(result.stderr.split())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_nothing_is_written_over_what_is_in_a_folder_of_recordings(tmp_path):
    file = written(tmp_path / "run.json", CHAT)
    assert run("replay", tmp_path, "--html", file).exit_code == 2


def test_a_path_that_leads_to_itself_costs_a_line(tmp_path, file):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    result = run("replay", file, loop)
    assert "1 recording, " in result.stdout
    assert f"Error: {loop}: it cannot be read: " in result.stderr


def test_a_recommendation_is_not_written_over_a_recording(tmp_path):
    file = written(tmp_path / "run.json", CHAT)
    assert run("recommend", file, "--save", file).exit_code == 2


def test_of_a_file_with_very_many_faults_the_first_are_told(tmp_path):
    asked = {"messages": [{"role": "user", "content": "?"}]}
    file = tmp_path / "asked.jsonl"
    file.write_text("\n".join([json.dumps(asked)] * 3_000), encoding="utf-8")
    result = run("replay", file, written(tmp_path / "good.json", CHAT))
    assert "1 recording, " in result.stdout
    assert len(result.stderr.splitlines()) == 11
    assert result.stderr.endswith("asked.jsonl: and 2,990 more\n")


def test_the_standard_input_is_read(tmp_path):
    command = [PROGRAM, "replay", "-", "--json", "-"]
    ended = subprocess.run(command, input=json.dumps(CHAT), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["recordings"][0]["messages"] == len(CHAT)


def test_on_a_narrow_terminal_policies_are_shown_in_parts_and_no_figure_is_broken(file, tmp_path):
    for number in range(5):
        (tmp_path / f"policy-{number}.yaml").write_text("strategy: auto")
    names = [word for number in range(5) for word in ("-p", tmp_path / f"policy-{number}.yaml")]
    shown = run_well("replay", file, *names, COLUMNS="60", FORCE_COLOR="1", TERM="xterm")
    rows = [line.split() for line in shown.splitlines() if "tokens sent" in line]
    assert len(rows) > 1
    assert sum(len(row) - 2 for row in rows) == 5


def test_policies_that_ended_early_are_named_below_the_table(tmp_path):
    huge = [{"role": "user", "content": "word " * 9_000}, {"role": "assistant", "content": "No."}]
    shown = run("replay", written(tmp_path / "huge.jsonl", huge), "--window", "2000").stdout
    assert "ended early, so that less was sent than by others: auto" in shown


# Real programs


def alive_in(group: int) -> list[str]:
    """The processes of a group that still run; one that ended and that nobody asked about is none."""
    listed = subprocess.run(
        ["ps", "-ww", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    return [args for pgid, stat, args in rows if int(pgid) == group and not stat.startswith("Z")]


def wait_for(condition: Any, *, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def busy(tmp_path: Path) -> Any:
    """A replay in two processes that would take minutes, in a group of its own. No pipe holds one of its recordings."""
    file = written(tmp_path / "many.jsonl", *[[*CHAT[:-1], *chat([FILLER * 9_000] * 5)]] * 40)
    command = [PROGRAM, "replay", file, "-j", "2", "--window", "8000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, preexec_fn=heed_interrupts, **pipes) as process:
        try:
            yield process
        finally:
            if alive_in(process.pid):
                os.killpg(process.pid, signal.SIGKILL)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    command = ["ps", "-ww", "-eo", "pid=,ppid=,args="]
    rows = [line.split(None, 2) for line in subprocess.run(command, capture_output=True, text=True).stdout.splitlines()]
    return [int(pid) for pid, parent, args in rows if int(parent) == process.pid and "spawn_main" in args]


@pytest.mark.extended
def test_ctrl_c_ends_all_processes_at_once_in_one_line(busy):
    assert wait_for(lambda: len(workers_of(busy)) == 2)
    os.killpg(busy.pid, signal.SIGINT)
    output, errors = busy.communicate(timeout=20)
    assert (busy.returncode, output, errors.strip()) == (1, "", "Aborted!")
    assert wait_for(lambda: not alive_in(busy.pid), seconds=10), alive_in(busy.pid)


@pytest.mark.extended
def test_a_process_that_is_killed_is_told_and_ends_the_others(busy):
    assert wait_for(lambda: len(workers_of(busy)) == 2)
    os.kill(workers_of(busy)[0], signal.SIGKILL)
    output, errors = busy.communicate(timeout=30)
    assert (busy.returncode, output) == (1, "")
    assert errors.startswith("Error: a process of the replay died")
    assert len(errors.splitlines()) == 1
    assert wait_for(lambda: not alive_in(busy.pid), seconds=10), alive_in(busy.pid)


@pytest.mark.extended
def test_in_several_processes_it_comes_to_the_same(tmp_path):
    file = written(tmp_path / "runs.jsonl", *(CHAT[: 3 + 2 * number] for number in range(12)))
    command = [PROGRAM, "replay", file, "--json", "-", "--window", "8000"]
    alone, shared = (
        subprocess.run([*command, "-j", jobs], capture_output=True, text=True, timeout=60) for jobs in ("1", "2")
    )
    assert (alone.returncode, alone.stderr, shared.stderr) == (0, "", "")
    assert alone.stdout == shared.stdout


@pytest.mark.extended
def test_on_a_terminal_progress_is_shown_and_taken_away_again(file):
    leader, follower = pty.openpty()
    with subprocess.Popen([PROGRAM, "replay", file, "-j", "1"], stderr=follower, stdout=subprocess.PIPE) as process:
        os.close(follower)
        shown = b""
        while chunk := _read(leader):
            shown += chunk
        assert process.stdout is not None
        assert b"tokens sent" in process.stdout.read()
    os.close(leader)
    assert b"replaying" in shown
    # The cursor goes up and the line is emptied.
    assert shown.rstrip().endswith(b"\x1b[2K")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # the other end is closed
        return b""
