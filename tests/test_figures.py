"""README and docs/performance.md quote the figures of benchmarks/results.json, and `make bench` measures them all."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = json.loads((BENCHMARKS / "results.json").read_text(encoding="utf-8"))
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOW_FAST = README.partition("## How fast\n")[2].partition("\n## ")[0]
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
SCRIPTS = {path.stem for path in BENCHMARKS.glob("*.py") if "\nBENCHMARK = " in path.read_text(encoding="utf-8")}


def module(name: str) -> ModuleType:
    """Return a module of the benchmarks, which find each other as scripts do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module(name)


def quoted_in_performance(name: str) -> str:
    return PERFORMANCE.partition(f"<!-- {name} benchmark -->\n")[2].partition(f"<!-- /{name} benchmark -->")[0]


# The file


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_every_benchmark_has_its_figures(name):
    part = RESULTS[name]
    assert part["command"] == f".venv/bin/python benchmarks/{name}.py --write"
    assert date.fromisoformat(part["measured"])
    assert part["machine"].startswith("Python 3.")
    assert all(isinstance(version, str) for version in part["packages"].values())
    assert part["rows"]


@pytest.mark.parametrize("name", RESULTS)
def test_every_row_says_what_was_measured_what_was_asked_for_and_what_came_out(name):
    for row in RESULTS[name]["rows"]:
        assert list(row) == ["measure", "bar", "result", "met"]
        assert all(row[field] and "\n" not in row[field] for field in ("measure", "bar", "result"))
        assert isinstance(row["met"], bool)


def test_nothing_is_in_the_file_that_nobody_measures():
    assert set(RESULTS) <= SCRIPTS


# The pages


@pytest.mark.parametrize("name", RESULTS)
def test_the_page_has_the_figures_of_the_file(name):
    part, quoted = RESULTS[name], quoted_in_performance(name)
    for row in part["rows"]:
        missed = "" if row["met"] else " **(missed)**"
        assert f"| {row['measure']} | {row['bar']} | {row['result']}{missed} |\n" in quoted
    assert part["machine"] in quoted
    assert part["measured"] in quoted
    assert all(f"{package} {version}" in quoted for package, version in part["packages"].items())


def test_the_page_has_the_table_of_the_file():
    quoted = quoted_in_performance("recall")
    for line in RESULTS["recall"]["table"]:
        assert f"| {' | '.join(line)} |\n" in quoted
        assert f"| {' | '.join(line.values())} |\n" in quoted


@pytest.mark.parametrize("page", [PERFORMANCE, README], ids=["performance", "README"])
def test_writing_the_same_figures_again_changes_nothing(page):
    assert module("results").quoted(page, RESULTS) == page


@pytest.mark.parametrize("name", [name for name in RESULTS if not all(row["met"] for row in RESULTS[name]["rows"])])
def test_the_page_says_why_a_bar_is_missed(name):
    section = PERFORMANCE.partition(f"<!-- /{name} benchmark -->")[2].partition("\n## ")[0]
    assert "**What is missed.**" in section


def numbers_of(name: str) -> set[str]:
    """All numbers that say what a benchmark measured."""
    part = RESULTS[name]
    probes = [line["runs (probes)"] for line in part.get("table", ())]
    counts = [*probes, *map(str, part.get("runs", {}).values())]
    return {number for text in (*counts, *(row["measure"] for row in part["rows"])) for number in NUMBER.findall(text)}


def test_each_figure_in_readme_is_that_of_a_row_of_the_file():
    lines = re.findall(r"^\| .*$", HOW_FAST, re.MULTILINE)[1:]
    assert len(lines) >= 8
    for line in lines:
        said, name, words, bar, result = re.fullmatch(r"\| (.+) <!-- (\w+): (.+) --> \| (.+) \| (.+) \|", line).groups()
        [row] = [row for row in RESULTS[name]["rows"] if words in row["measure"]]
        assert {*NUMBER.findall(said)} <= numbers_of(name)
        assert (bar, result.removesuffix(" **(missed)**")) == (row["bar"], row["result"])
        assert result.endswith(" **(missed)**") is not row["met"]


# Quoting

ROW = {"measure": "a walk", "bar": "≤ 2 h", "result": "3 h", "met": False}
PART = {"measured": "2026-01-02", "machine": "Python 3.12.1, 2 cores", "packages": {"boots": "4.0"}, "rows": [ROW]}


def test_a_line_keeps_its_words_and_gets_the_figures_of_its_row():
    page = "| how far <!-- walks: walk --> | ? | ? |\n| other | ? | ? |\n"
    expected = "| how far <!-- walks: walk --> | ≤ 2 h | 3 h **(missed)** |\n| other | ? | ? |\n"
    assert module("results").quoted(page, {"walks": PART}) == expected


def test_pages_say_how_many_bars_are_missed_and_which():
    more = {"measure": "… uphill (in rain)", "bar": "≤ 3 h", "result": "4 h", "met": False}
    beside = {"measure": "a ride", "bar": "none", "result": "1 h", "met": True}
    results = {"walks": {**PART, "rows": [ROW, more, beside]}}
    page = "So: <!-- missed -->?<!-- /missed -->.\n\n<!-- missed -->\n?\n<!-- /missed -->\n"
    assert module("results").quoted(page, results) == (
        "So: <!-- missed -->Of 2 bars, 2 are missed<!-- /missed -->.\n\n"
        "<!-- missed -->\nOf 2 bars, 2 are missed:\n\n"
        "- a walk: asked for ≤ 2 h, measured 3 h\n"
        "- a walk … uphill (in rain): asked for ≤ 3 h, measured 4 h\n<!-- /missed -->\n"
    )


def test_a_table_takes_the_place_of_the_one_before():
    page = "before\n<!-- walks benchmark -->\nold\n<!-- /walks benchmark -->\nafter\n"
    quoted = module("results").quoted(page, {"walks": PART})
    assert "| a walk | ≤ 2 h | 3 h **(missed)** |\n\n(Python 3.12.1, 2 cores, boots 4.0; 2026-01-02)\n<!-- /" in quoted
    assert quoted.startswith("before\n<!-- walks benchmark -->\n| measure")
    assert quoted.endswith("<!-- /walks benchmark -->\nafter\n")
    assert "old" not in quoted


def test_what_was_never_measured_is_left_as_it_is():
    page = "| far <!-- walks: walk --> | ? | ? |\n\n<!-- walks benchmark -->\nnot yet\n<!-- /walks benchmark -->\n"
    assert module("results").quoted(page, {}) == page


@pytest.mark.parametrize("measures", [(), ("a walk", "another walk")])
def test_words_that_tell_no_single_row_are_an_error(measures):
    part = {**PART, "rows": [{**ROW, "measure": measure} for measure in measures]}
    with pytest.raises(ValueError, match=f"'walk', but {len(measures)} rows have that"):
        module("results").quoted("| far <!-- walks: walk --> | ? | ? |", {"walks": part})


TEXT = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1)


@given(TEXT, TEXT, st.booleans())
def test_quoting_twice_is_quoting_once(measure, result, met):
    row = {"measure": f"a walk of {measure}", "bar": "none", "result": result, "met": met}
    page = "| far <!-- walks: a walk --> | ? | ? |\n<!-- walks benchmark -->\n<!-- /walks benchmark -->\n"
    once = module("results").quoted(page, {"walks": {**PART, "rows": [row]}})
    assert once.count(result) >= 2
    assert module("results").quoted(once, {"walks": {**PART, "rows": [row]}}) == once


# make bench


def test_make_bench_runs_every_benchmark():
    assert set(module("run").BENCHMARKS) == SCRIPTS
    [recipe] = re.findall(r"^bench:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert recipe == "\t@$(BIN)/python benchmarks/run.py $(ONLY)\n"


def scripts_in(folder: Path, **scripts: str) -> Path:
    for name, script in scripts.items():
        (folder / f"{name}.py").write_text(script, encoding="utf-8")
    return folder


MEASURES = "import sys; print('measured', *sys.argv[1:])"


def test_a_benchmark_that_fails_is_told_and_the_others_run(tmp_path, capfd):
    folder = scripts_in(tmp_path, storage=MEASURES, search="raise OSError('no disk')", eviction=MEASURES)
    assert module("run").main(["eviction", "search", "storage"], folder) == 1
    output, errors = capfd.readouterr()
    assert output.count("measured --write\n") == 2
    assert re.search(r"^\[2/3\] search: failed \(exit status 1\) after \d+ s; its earlier figures stay$", output, re.M)
    assert output.endswith("failed (exit status 1): search\nmeasured: storage, eviction\n")
    assert "no disk" in errors


def test_a_benchmark_without_its_data_is_skipped_and_that_is_no_failure(tmp_path, capfd):
    folder = scripts_in(tmp_path, tokens="raise SystemExit(77)", search=MEASURES)
    assert module("run").main(["search", "tokens"], folder) == 0
    assert capfd.readouterr().out.endswith("measured: search\nskipped: tokens\n")


def test_an_unknown_name_is_told_with_those_there_are(tmp_path, capsys):
    with pytest.raises(SystemExit):
        module("run").main(["serach"], tmp_path)
    assert "no benchmark is called serach; there are storage, " in capsys.readouterr().err


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> ModuleType:
    """The results and the pages, with copies in place of the files."""
    results = module("results")
    for name in ("RESULTS", "PERFORMANCE", "README"):
        copy = tmp_path / getattr(results, name).name
        copy.write_bytes(getattr(results, name).read_bytes())
        monkeypatch.setattr(results, name, copy)
    return results


def measuring(**options: object) -> object:
    reporting = module("reporting")
    row = reporting.Row("`import holdfast`, by `python -X importtime`", "≤ 60 ms", "12,345 ms", False)

    def measure() -> list[object]:
        """nothing"""
        return [row]

    return reporting.Benchmark(name="storage", measures=[measure], **options)


def test_a_benchmark_only_prints(elsewhere, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["storage.py"])
    measuring().run()
    assert "| ≤ 60 ms | 12,345 ms **(missed)** |" in capsys.readouterr().out
    assert json.loads(elsewhere.RESULTS.read_text(encoding="utf-8")) == RESULTS


def test_with_write_a_benchmark_replaces_its_own_figures_and_no_others(elsewhere, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["storage.py", "--write"])
    monkeypatch.setattr(elsewhere, "README", one_line := elsewhere.README.with_name("one.md"))
    one_line.write_text("| `import holdfast` <!-- storage: `import holdfast` --> | | |\n", encoding="utf-8")
    measuring(packages=("rich",)).run()
    written = json.loads(elsewhere.RESULTS.read_text(encoding="utf-8"))
    assert written["storage"]["rows"][0]["result"] == "12,345 ms"
    assert {**written, "storage": RESULTS["storage"]} == RESULTS
    page = elsewhere.PERFORMANCE.read_text(encoding="utf-8")
    assert [page.count(f"{before}12,345 ms") for before in ("| ≤ 60 ms | ", "asked for ≤ 60 ms, measured ")] == [1, 1]
    assert one_line.read_text(encoding="utf-8").endswith("--> | ≤ 60 ms | 12,345 ms **(missed)** |\n")


@pytest.mark.parametrize(("options", "without_data"), [([], False), (["--write"], False), (["--write"], True)])
def test_without_its_data_a_benchmark_leaves_the_earlier_figures(
    options, without_data, elsewhere, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["storage.py", *options])
    with pytest.raises(SystemExit) as ended:
        measuring(data=[tmp_path / "runs.jsonl.gz"], without_data=without_data).run()
    assert ended.value.code == 77
    assert "the folder that HOLDFAST_DATA names" in capsys.readouterr().err
    assert json.loads(elsewhere.RESULTS.read_text(encoding="utf-8")) == RESULTS


def test_what_can_be_measured_without_the_data_is_printed(elsewhere, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["storage.py"])
    measuring(data=[tmp_path / "runs.jsonl.gz"], without_data=True).run()
    assert "12,345 ms" in capsys.readouterr().out


# Commands


def test_every_command_named_on_the_page_exists():
    commands = set(re.findall(r"`((?:make|\.venv/bin/python|holdfast) [^`]+)`", PERFORMANCE))
    assert len(commands) > len(SCRIPTS)
    for command in commands:
        check_command(*command.replace('"', "").split())


def check_command(program: str, first: str, *rest: str) -> None:
    if program == "make":
        names = " ".join(rest).removeprefix("ONLY=").split()
        assert f"\n{first}: " in (ROOT / "Makefile").read_text(encoding="utf-8")
        assert set(names) <= SCRIPTS
    elif program == "holdfast":
        told = subprocess.run(
            [Path(sys.executable).with_name("holdfast"), first, "--help"], capture_output=True, text=True
        )
        assert all(option in told.stdout for option in rest if option.startswith("--")), told.stderr
        assert told.returncode == 0
    else:
        script = (ROOT / first).read_text(encoding="utf-8")
        shared = (BENCHMARKS / "reporting.py").read_text(encoding="utf-8")
        assert all(f'"{option}"' in script + shared for option in rest)


# The sampler

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="only Linux tells it")

GROWS = """
import subprocess, sys
held = b"x" * 60_000_000
if len(sys.argv) < 2:
    subprocess.run([sys.executable, __file__, "child"], check=True)
else:
    sum(range(6_000_000))
"""


@ON_LINUX
def test_the_memory_of_a_command_is_that_of_all_its_processes(tmp_path):
    script = tmp_path / "grows.py"
    script.write_text(GROWS, encoding="utf-8")
    used = module("processes").used_by([sys.executable, str(script)], pause=0.005)
    assert 120_000_000 < used.peak_bytes < 200_000_000
    assert used.seconds > 0


@ON_LINUX
def test_a_command_that_fails_has_no_figures():
    with pytest.raises(subprocess.CalledProcessError, match="exit status 3"):
        module("processes").used_by([sys.executable, "-c", "raise SystemExit(3)"])
