"""What the agent of the demo can do, for real: look through the Python that runs."""

from __future__ import annotations

import json
import os
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

__all__ = ["TOOLS", "DemoTool", "largest_modules"]

_LIBRARY = Path(sysconfig.get_path("stdlib"))
_NOT_PART_OF_IT = {"__pycache__", "dist-packages", "site-packages", "test", "tests", "idlelib"}
_MOST_PACKAGES = 40


@dataclass(frozen=True)
class DemoTool:
    """A tool of the demo's agent: what a model is told of it, and what it does. It takes a text, or nothing."""

    name: str
    description: str
    argument: str
    run: Callable[..., str]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The JSON schema of what it takes."""
        properties = {self.argument: {"type": "string"}} if self.argument else {}
        return {"type": "object", "properties": properties, "required": list(properties)}

    @property
    def spec(self) -> dict[str, Any]:
        """What a model is told, in the form of OpenAI."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.schema)}
        return {"type": "function", "function": function}


def largest_modules(count: int) -> list[str]:
    """Return the modules of the standard library with the most to read, the largest first."""
    by_size = sorted(_sources(), key=lambda path: (-path.stat().st_size, path))
    return [str(path.relative_to(_LIBRARY)) for path in by_size[:count]]


def _list_library() -> str:
    return "".join(f"{path.lstat().st_size:>10,}  {path.relative_to(_LIBRARY)}\n" for path in _files())


def _read_module(path: str) -> str:
    # What a model names may lie anywhere; only what is in the library is read.
    if path not in map(str, (each.relative_to(_LIBRARY) for each in _sources())):
        return f"there is no module {path!r:.80} in the standard library"
    return _text(_LIBRARY / path)


def _grep_library(text: str) -> str:
    return "".join(
        f"{path.relative_to(_LIBRARY)}:{number}:{line}\n"
        for path in _sources()
        for number, line in enumerate(_text(path).splitlines(), start=1)
        if text in line
    )


def _describe_packages() -> str:
    return json.dumps([_package(package) for package in _packages()], indent=1, default=str)


TOOLS: tuple[DemoTool, ...] = (
    DemoTool("list_library", "List the files of the standard library, with their sizes.", "", _list_library),
    DemoTool("read_module", "Read a module of the standard library.", "path", _read_module),
    DemoTool("grep_library", "Find all lines of the standard library that hold a text.", "text", _grep_library),
    DemoTool("describe_packages", "Dump the metadata of the installed packages as JSON.", "", _describe_packages),
)


@cache
def _sources() -> tuple[Path, ...]:
    return tuple(path for path in _files() if path.suffix == ".py")


def _files() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(_LIBRARY):
        subfolders[:] = sorted(set(subfolders) - _NOT_PART_OF_IT)
        yield from (Path(folder, name) for name in sorted(names))


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _packages() -> list[Distribution]:
    return sorted(distributions(), key=lambda package: package.metadata["Name"].lower())[:_MOST_PACKAGES]


def _package(package: Distribution) -> dict[str, object]:
    files = [{"path": str(file), "size": file.size} for file in package.files or ()]
    return {**package.metadata.json, "files": files}
