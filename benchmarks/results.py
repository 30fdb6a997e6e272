"""The figures of all benchmarks, in results.json, and the pages that quote them.

docs/performance.md has all tables, each between ``<!-- NAME benchmark -->`` and ``<!-- /NAME benchmark -->``. README
has one table whose lines quote a row each, told by a comment in the first cell: ``<!-- NAME: words -->``, where the
words are a part of that row's measure and of no other's. Between ``<!-- missed -->`` and ``<!-- /missed -->``, both say
how many bars are missed; where these stand on lines of their own, which. Only what is quoted is replaced. As a script,
this writes the quotes again from the file, after a change of the pages' own words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results.json"
PERFORMANCE, README = ROOT / "docs" / "performance.md", ROOT / "README.md"
TABLE = re.compile(r"^<!-- (\w+) benchmark -->\n.*?^<!-- /\1 benchmark -->$", re.MULTILINE | re.DOTALL)
MISSED = re.compile(r"<!-- missed -->.*?<!-- /missed -->", re.DOTALL)
LISTED = re.compile(r"^<!-- missed -->\n.*?^<!-- /missed -->$", re.MULTILINE | re.DOTALL)
AGAINST = re.compile(r", against .*$| \(.*$")
QUOTE = re.compile(r"^(\| .* <!-- (\w+): (.+?) --> \|).*$", re.MULTILINE)


Part = Mapping[str, Any]
Results = Mapping[str, Part]


# The file


def read() -> dict[str, Part]:
    """The part of each benchmark, by name."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def replace(name: str, part: Part) -> None:
    """Put the part of one benchmark into the file, and what is quoted of it into the pages; all of it, or nothing."""
    parts = {**read(), name: part}
    ordered = {name: parts[name] for name in sorted(parts)}
    pages = pages_with(ordered)
    RESULTS.write_text(json.dumps(ordered, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    write(pages)


# The pages


def pages_with(results: Results) -> dict[Path, str]:
    """The pages with these figures."""
    return {page: quoted(page.read_text(encoding="utf-8"), results) for page in (PERFORMANCE, README)}


def write(pages: Mapping[Path, str]) -> None:
    for page, text in pages.items():
        page.write_text(text, encoding="utf-8")


def quoted(page: str, results: Results) -> str:
    """A page with these figures. What was never measured is left as it is."""
    page = TABLE.sub(lambda match: between_marks(match[1], results) or match[0], page)
    page = LISTED.sub(lambda _: f"<!-- missed -->\n{missed_list(results)}\n<!-- /missed -->", page)
    page = MISSED.sub(
        lambda match: match[0] if "\n" in match[0] else f"<!-- missed -->{missed(results)}<!-- /missed -->", page
    )
    return QUOTE.sub(lambda match: line_of(match[1], match[2], match[3], results) or match[0], page)


def tables_in(page: str) -> list[str]:
    """The names of the benchmarks for whose tables a page has a place."""
    return [match[1] for match in TABLE.finditer(page)]


def between_marks(name: str, results: Results) -> str:
    mark = f"{name} benchmark"
    return f"<!-- {mark} -->\n{as_markdown(results[name])}\n<!-- /{mark} -->" if name in results else ""


def line_of(first_cell: str, name: str, words: str, results: Results) -> str:
    return f"{first_cell} {cells_of(row_with(words, results[name]))} |" if name in results else ""


def row_with(words: str, part: Part) -> Part:
    """The one row whose measure has these words."""
    rows = [row for row in part["rows"] if words in row["measure"]]
    if len(rows) != 1:
        raise ValueError(f"README quotes a row with {words!r}, but {len(rows)} rows have that; quote words of one row")
    return rows[0]


def missed(results: Results) -> str:
    """How many of the bars are missed."""
    bars = [row for part in results.values() for row in part["rows"] if row["bar"] != "none"]
    return f"Of {len(bars)} bars, {sum(not row['met'] for row in bars)} are missed"


def missed_list(results: Results) -> str:
    """The rows that missed their bar, each with the row that it goes on from."""
    lines = [f"{missed(results)}:", ""]
    for part in results.values():
        begun = ""
        for row in part["rows"]:
            begun = begun if row["measure"].startswith("…") else row["measure"]
            if not row["met"]:
                measure = row["measure"] if row["measure"] == begun else f"{AGAINST.sub('', begun)} {row['measure']}"
                lines.append(f"- {measure}: asked for {row['bar']}, measured {row['result']}")
    return "\n".join(lines)


# Markdown


def as_markdown(part: Part) -> str:
    """What one benchmark measured, with what and when."""
    tables = [table_of(part["table"])] if "table" in part else []
    return "\n\n".join([*tables, by_measure(part["rows"]), f"({measured_with(part)}; {part['measured']})"])


def by_measure(rows: Iterable[Part]) -> str:
    """The table of what was measured and what was asked for."""
    return "\n".join(
        ["| measure | bar | measured |", "|---|---|---|", *(f"| {row['measure']} | {cells_of(row)} |" for row in rows)]
    )


def table_of(lines: Sequence[Mapping[str, str]]) -> str:
    """The table of lines that say their columns."""
    rows = [list(lines[0]), ["---"] * len(lines[0]), *(list(line.values()) for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def cells_of(row: Part) -> str:
    return f"{row['bar']} | {row['result']}{'' if row['met'] else ' **(missed)**'}"


def measured_with(part: Part) -> str:
    return ", ".join([part["machine"], *(f"{name} {version}" for name, version in part["packages"].items())])


if __name__ == "__main__":
    write(pages_with(read()))
