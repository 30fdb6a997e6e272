"""What MkDocs does not do by itself for the documentation; `mkdocs.yml` names this file as its hook.

The pages of `docs` link to files beside it, as README and CHANGELOG, so that they read on a code host as well. Here
the changelog and the notes for contributors become pages, the decisions get a list, and links lead to these. Links of
README and CONTRIBUTING, which are no pages of `docs`, are checked as well: what leads nowhere is a warning, and with
``--strict`` an error.
"""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["broken_links", "decisions", "on_config", "on_files", "on_page_markdown", "on_post_build"]

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LIST_OF_DECISIONS = "decisions/index.md"
MADE_HERE = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
ON_THE_SITE = {
    "README.md": "index.md",
    "docs/decisions": LIST_OF_DECISIONS,
    **{file: page for page, file in MADE_HERE.items()},
}
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:)([^)\s#]*)(#[^)\s]*)?\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
ROW = re.compile(r"^\|.*$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")

logger = logging.getLogger("mkdocs.hooks.documentation")


def on_config(config: Any) -> Any:
    """Put every decision into the navigation, under the list of them."""
    for section in _sections(config.nav):
        if LIST_OF_DECISIONS in section:
            section += [{title: f"decisions/{path.name}"} for path, title in decisions()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made from files beside the documentation."""
    from mkdocs.structure.files import File

    for page, file in MADE_HERE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / file)))
    files.append(File.generated(config, LIST_OF_DECISIONS, content=_list_of_decisions()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Have links lead to pages of the site, and code be shown as it is meant: in tables, and as files of tests."""
    source = MADE_HERE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder, pages = posixpath.dirname(source), {file.src_uri for file in files}
    # Prose and fences by turns.
    parts = FENCE.split(markdown)
    parts[::2] = [
        LINK.sub(
            lambda link: _link_on_the_site(link, folder, page.file.src_uri, pages), ROW.sub(_with_plain_bars, prose)
        )
        for prose in parts[::2]
    ]
    return re.sub(r"^```python test$", '```python title="a file for pytest"', "".join(parts), flags=re.MULTILINE)


def on_post_build(config: Any) -> None:
    """Check the links that MkDocs does not look at."""
    for name in ("README.md", "CONTRIBUTING.md"):
        for link in broken_links(ROOT / name):
            logger.warning("%s contains a link '%s', which leads nowhere.", name, link)


def decisions() -> list[tuple[Path, str]]:
    """The pages of decisions, with their titles, in order."""
    return [(path, _title(path)) for path in sorted((DOCS / "decisions").glob("[0-9]*.md"))]


def broken_links(page: Path) -> Iterator[str]:
    """Yield the links of a Markdown file whose file, or whose heading, is not there."""
    for _, target, anchor in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        there = page.parent / target if target else page
        if not there.exists() or (anchor and anchor[1:] not in _anchors(there)):
            yield target + anchor


def _anchors(page: Path) -> set[str]:
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def _sections(nav: Any) -> Iterator[list[Any]]:
    """Yield the lists in a navigation, the outermost first."""
    if isinstance(nav, list):
        yield nav
        for item in nav:
            yield from _sections(item)
    elif isinstance(nav, dict):
        for item in nav.values():
            yield from _sections(item)


def _with_plain_bars(row: re.Match[str]) -> str:
    """Return a row of a table with the bars in its code as they are: code hosts want them escaped, MkDocs does not."""
    return CODE.sub(lambda code: code[0].replace(r"\|", "|"), row[0])


def _link_on_the_site(link: re.Match[str], folder: str, page: str, pages: set[str]) -> str:
    text, target, anchor = link[1], link[2], link[3] or ""
    if not target:
        return link[0]
    path = posixpath.normpath(posixpath.join(folder, target))
    found = ON_THE_SITE.get(path, path.removeprefix("docs/"))
    if found not in pages and not path.startswith("docs/"):
        # A file of the project that is no page: benchmarks, say.
        return text if (ROOT / path).exists() else link[0]
    return f"[{text}]({posixpath.relpath(found, posixpath.dirname(page) or '.')}{anchor})"


def _list_of_decisions() -> str:
    rows = "\n".join(f"- [{title}]({path.name})" for path, title in decisions())
    return f"# Decisions\n\nOne page each: context, options, decision, price.\n\n{rows}\n"


def _title(page: Path) -> str:
    return page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
