"""The documentation is whole: all pages are in the navigation, links lead somewhere, nothing comes from other hosts."""

from __future__ import annotations

import builtins
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

import holdfast.manager
import holdfast.storage
from holdfast import ContextManager, EvictingStorage, FileStorage, InMemoryStorage, S3Storage, ScopedStorage, errors
from holdfast.testing import Call, ScriptedClient

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# What a page loads by itself; a link that a reader may follow is no such thing.
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href", "use": "href"}


def hook() -> ModuleType:
    """What `mkdocs.yml` calls while it builds."""
    spec = importlib.util.spec_from_file_location("documentation", ROOT / "tools" / "documentation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pages_in(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for item in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else ():
        yield from pages_in(item)


class Read(HTMLParser):
    """What a page of the built site loads, leads to, and can be led to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.anchors |= {value for value in (given.get("id"), given.get("name")) if value}
        if (target := given.get(LOADS.get(tag, ""))) is not None:
            self.loads.append(target)
        if tag == "a" and (target := given.get("href")) is not None:
            self.links.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def built(site: Path) -> dict[Path, Read]:
    return {page.relative_to(site): Read(page) for page in site.rglob("*.html")}


@pytest.mark.extended
def test_every_page_is_built(built):
    written = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert written | {Path("changelog.html"), Path("contributing.html")} <= built.keys()


@pytest.mark.extended
def test_no_page_loads_anything_from_another_host(built):
    fetched = {(str(page), target) for page, read in built.items() for target in read.loads if urlsplit(target).netloc}
    assert fetched == set()


@pytest.mark.extended
def test_no_style_loads_anything_from_another_host(site):
    for style in site.rglob("*.css"):
        addresses = re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", style.read_text(encoding="utf-8"))
        assert addresses == []


@pytest.mark.extended
def test_links_and_anchors_within_the_site_lead_somewhere(site, built):
    broken = []
    for page, read in built.items():
        # The page for what is not found has links from the root of a server.
        for target in () if page.name == "404.html" else read.links:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = Path(os.path.normpath(page.parent / unquote(parts.path))) if parts.path else page
            if path not in built:
                leads_somewhere = (site / path).is_file()
            else:
                leads_somewhere = not parts.fragment or unquote(parts.fragment) in built[path].anchors
            if not leads_somewhere:
                broken.append((str(page), target))
    assert broken == []


@pytest.mark.extended
def test_the_changelog_of_the_site_is_the_one_of_the_project(site):
    first = re.findall(r"^- (\S+ \S+ \S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    page = re.sub(r"<[^>]+>", "", (site / "changelog.html").read_text(encoding="utf-8"))
    assert sum(words.replace("`", "") in page for words in first) > len(first) // 2


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    yaml = pytest.importorskip("yaml")
    nav = list(pages_in(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    assert len(nav) == len(set(nav))
    made = {*hook().MADE_HERE, hook().LIST_OF_DECISIONS}
    listed_by_the_hook = {f"decisions/{path.name}" for path, _ in hook().decisions()}
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert set(nav) | listed_by_the_hook == written | made


def titles_in(nav: Any) -> Iterator[tuple[str, str]]:
    for item in nav:
        for title, inner in item.items() if isinstance(item, dict) else ():
            yield from [(title, inner)] if isinstance(inner, str) else titles_in(inner)


def test_a_page_begins_with_the_words_that_lead_to_it():
    yaml = pytest.importorskip("yaml")
    titles = titles_in(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    pages = [(title, DOCS / page) for title, page in titles if page != "index.md" and page not in hook().MADE_HERE]
    assert len(pages) > 10
    for title, page in pages:
        assert page.read_text(encoding="utf-8").startswith(f"# {title}")


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_of_pages_beside_the_documentation_lead_to_files_and_headings(name):
    assert list(hook().broken_links(ROOT / name)) == []


def test_a_link_to_a_heading_that_is_not_there_is_told(tmp_path):
    (tmp_path / "there.md").write_text("# A `title`, here\n", encoding="utf-8")
    text = "[a](there.md#a-title-here) [b](there.md#elsewhere) [c](gone.md)\n\n```python\ncalls[0](gone)\n```\n"
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    assert list(hook().broken_links(tmp_path / "page.md")) == ["there.md#elsewhere", "gone.md"]


def test_links_lead_to_pages_of_the_site_and_programs_stay_as_they_are():
    program = "```python\ncalls[0](../README.md)\n```"
    page, readme = (SimpleNamespace(file=SimpleNamespace(src_uri=name)) for name in ("faq.md", "index.md"))
    text = f"[a](../README.md)\n\n{program}\n\n[b](index.md#c)\n\n{program}\n"
    shown = hook().on_page_markdown(text, page, None, [page.file, readme.file])
    assert shown == f"[a](index.md)\n\n{program}\n\n[b](index.md#c)\n\n{program}\n"


def test_bars_in_the_code_of_tables_are_shown_without_what_escapes_them():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="faq.md"))
    table, rest = "| a \\| b | `(a\\|aa)+$` on `x` |", "`a\\|b`\n\n```sh\n| `a\\|b` |\n```\n"
    shown = hook().on_page_markdown(f"{table}\n\n{rest}", page, None, [page.file])
    assert shown == f"| a \\| b | `(a|aa)+$` on `x` |\n\n{rest}"


@pytest.mark.extended
def test_no_table_of_the_site_shows_a_bar_as_escaped(site):
    cells = [
        (page.name, cell)
        for page in site.rglob("*.html")
        for cell in re.findall(r"<t[dh][^>]*>.*?</t[dh]>", page.read_text(encoding="utf-8"), re.DOTALL)
    ]
    assert ("0011-patterns-on-a-linear-engine.html", "<th><code>ERROR|FATAL</code></th>") in cells
    assert [cell for cell in cells if "\\|" in cell[1]] == []


def rows_of(page: str, columns: int) -> list[list[str]]:
    """The rows of the tables of that many columns, without marks of code."""
    text = (DOCS / page).read_text(encoding="utf-8").replace("`", "")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == columns]


def test_the_page_of_errors_draws_the_tree_as_it_is():
    drawn = {row[0]: {*filter(None, f"{row[1]}, {row[2]}".split(", "))} for row in rows_of("errors.md", 3)[1:]}
    assert drawn.keys() == set(errors.__all__)
    for name, bases in drawn.items():
        kind = getattr(errors, name)
        named = {getattr(errors, base, None) or getattr(builtins, base) for base in bases}
        assert set(kind.__bases__) <= {*named, errors.HoldfastError}
        assert issubclass(kind, tuple(named))
        assert all(issubclass(kind, base) for base in named)


def test_the_page_of_errors_says_of_each_when_it_comes():
    headings = re.findall(r"^### (.+)$", (DOCS / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    told = {name for heading in headings for name in re.findall(r"`(\w+)`", heading)}
    assert told == set(errors.__all__) - {"HoldfastError"}


def test_the_page_of_storage_says_who_offers_what():
    memory = InMemoryStorage(evict_after_turns=None)
    kinds = [
        memory,
        FileStorage(),
        S3Storage("bucket"),
        ScopedStorage(memory, "scope"),
        EvictingStorage(memory, max_entries=1),
    ]
    verbs = {name: getattr(holdfast.storage, name) for name in holdfast.storage.__all__ if name.startswith("Supports")}
    offered = {name: ["yes" if isinstance(kind, verb) else "no" for kind in kinds] for name, verb in verbs.items()}
    assert {row[0]: row[2:] for row in rows_of("storage.md", 7)[1:]} == offered


def test_the_bills_of_short_chats_that_are_quoted_are_those_that_were_measured():
    quoted = re.search(
        r"is (\d\.\d+) times the bill.*?costs (\d\.\d+)", (DOCS / "faq.md").read_text("utf-8"), re.DOTALL
    )
    bills = {row[2]: f"{float(row[-3]):.2f}" for row in rows_of("performance.md", 15) if row[0].startswith("tau")}
    assert quoted is not None
    assert quoted.groups() == (bills["holdfast"], bills['strands, "auto"'])


def test_the_bill_of_coding_agents_is_as_small_as_it_is_said_to_be():
    ours = [row for row in rows_of("performance.md", 15) if row[0].startswith("swe") and row[2] == "holdfast"]
    bills = [float(row[-3]) for row in ours]
    assert "[about a third](performance.md" in (DOCS / "faq.md").read_text("utf-8")
    assert bills
    assert max(bills) < 0.35


def test_the_error_of_the_estimate_that_is_quoted_is_the_one_that_was_measured():
    quoted = re.search(r"off by \[(\S+) on average\]", (DOCS / "faq.md").read_text("utf-8"))
    [measured] = [row[-1] for row in rows_of("performance.md", 3) if re.match(r"mean error over \S+ messages", row[0])]
    assert quoted is not None
    assert quoted[1] == measured


def test_the_tokens_of_the_tools_that_are_quoted_are_those_that_the_program_prints():
    page = (DOCS / "faq.md").read_text("utf-8")
    quoted = re.search(r"three tools take about (\S+) tokens", page)
    printed = re.search(r"^about (\S+) tokens of tools$", page, re.MULTILINE)
    assert quoted is not None
    assert printed is not None
    assert quoted[1] == printed[1]


async def conversation_about(results: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[ContextManager, list]:
    """A conversation of two hours in which these tools, in turn, are called so often that messages leave."""
    monkeypatch.setattr(holdfast.manager, "now", partial(next, count(1_794_820_320, step=120)))
    names = [name for _ in range(40) for name in results]
    client = ScriptedClient("openai", [Call(name) for name in names], window=16_000)
    messages = [{"role": "user", "content": "Look at everything."}]
    manager = ContextManager("auto", dialect="openai", window=16_000)
    conversation = manager.converse(messages)
    while messages[-1]["content"] != "done.":
        reply = await conversation.call_model(
            lambda messages: client.create(messages=messages, tools=conversation.tool_specs)
        )
        messages.append(message := reply["choices"][0]["message"])
        for call in message.get("tool_calls") or ():
            name = call["function"]["name"]
            messages.append(await conversation.call_tool(name, call["id"], {}, lambda name, _: results[name]))
    return manager, messages


def shape_of(text: str) -> str:
    """A text without its line ends, references and numbers."""
    return re.sub(r"\d+", "0", re.sub(r"\bmem_\S+", "mem", re.sub(r"\s*\n>?\s*", " ", text)))


async def test_the_marker_that_is_quoted_is_what_one_looks_like(monkeypatch):
    _, messages = await conversation_about({"read_file": "all is well\n" * 200, "bash": "fine"}, monkeypatch)
    quoted = re.search(r"^> (\[.*?\])$", (DOCS / "archive.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    [marker] = [message["content"] for message in messages if "left this view" in (message["content"] or "")]
    assert quoted is not None
    assert shape_of(quoted[1]) == shape_of(marker)


async def test_the_labels_of_hits_are_those_that_are_listed(monkeypatch):
    parcels = "\n".join(f"parcel {number} was packed" for number in range(2_000))
    manager, _ = await conversation_about({"get_order": "it is paid\n" * 100, "get_parcels": parcels}, monkeypatch)
    table = rows_of("archive.md", 3)[1:]
    quoted = re.findall(r'"([^"]+)"', table[0][1])
    cases = [("paid", "for a message", quoted[0]), ("parcel 1900", "", quoted[1].replace("get_order", "get_parcels"))]
    for query, kind, what in cases:
        labels = (await manager.search_context(query)).hits[0].labels
        assert labels.keys() == {name for name, _, there in table if there in ("always", "if it is known", kind)}
        assert shape_of(labels["what"]) == shape_of(what)


@pytest.mark.extended
def test_the_first_page_is_in_the_navigation_of_the_others(site):
    page = (site / "quickstart.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="index.html" class="md-nav__link">\s*(?:<[^>]+>\s*)*Overview\s*<', page)
