"""The shape of the package: what it imports, in which direction, and what it shows."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import GenericAlias

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
MODULES = sorted(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in SOURCE.rglob("*.py"))
NAMES = [name.removesuffix(".__init__") for name in MODULES]
# Whatever the adapters adapt is imported with them.
LOADABLE = [name for name in NAMES if find_spec("strands") or not name.startswith("holdfast.adapters.strands")]

# From the ground up; a room may import from its own floor and from those below.
FLOORS = [
    {"holdfast.errors", "holdfast.defaults"},
    {"holdfast.checks", "holdfast.extras", "holdfast.media_types", "holdfast.model_windows"},
    {"holdfast.names", "holdfast.encoded"},
    {"holdfast.ledger"},
    {"holdfast.telemetry"},
    {"holdfast.messages"},
    {"holdfast.dialects", "holdfast.cuts"},
    {"holdfast.tokens", "holdfast.budget"},
    {"holdfast.history", "holdfast.hooks", "holdfast.overflow", "holdfast.recordings", "holdfast.extracts"},
    {"holdfast.agent_tools", "holdfast.limits", "holdfast.turns"},
    {"holdfast.storage", "holdfast.gentle_json", "holdfast.readable_json", "holdfast.patterns"},
    {"holdfast.batches"},
    {"holdfast.eviction", "holdfast.compression", "holdfast.search", "holdfast.references", "holdfast.selection"},
    {"holdfast.reports", "holdfast.retrieval"},
    {"holdfast.hold"},
    {"holdfast.offload", "holdfast.archive"},
    {"holdfast.bookkeeping", "holdfast.conversation", "holdfast.configuration", "holdfast.loops", "holdfast.undo"},
    {"holdfast.composition"},
    {"holdfast.manager"},
    {"holdfast.adapters", "holdfast.replay"},
    {"holdfast", "holdfast.testing", "holdfast.cli"},
]

# Beside the standard library, `import holdfast` may load these, and nothing else.
ALLOWED = {"holdfast"}


def modules_loaded_by(script: str) -> set[str]:
    script = f"import sys; before = set(sys.modules); {script}; print(*(set(sys.modules) - before))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in answer.stdout.split()}


@pytest.mark.parametrize(
    "script", ["import holdfast", "import holdfast; [getattr(holdfast, name) for name in holdfast.__all__]"]
)
def test_importing_holdfast_loads_the_standard_library_only(script):
    foreign = modules_loaded_by(script) - sys.stdlib_module_names - ALLOWED
    # An interpreter may load private helpers of the standard library that carry the platform in their name.
    assert {name for name in foreign if not name.startswith("_sysconfigdata")} == set()


def test_importing_holdfast_loads_none_of_its_parts():
    assert modules_loaded_by("import holdfast") & {"asyncio", "dataclasses", "json"} == set()


def floor_of(module: str) -> int:
    rooms = [(room, floor) for floor, rooms in enumerate(FLOORS) for room in rooms]
    return max((len(room), floor) for room, floor in rooms if module == room or module.startswith(f"{room}."))[1]


def imports_of(module: str) -> set[str]:
    path = SOURCE.parent.joinpath(*module.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    found = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    return {name for name in found if name.partition(".")[0] == "holdfast"}


@pytest.mark.parametrize("module", NAMES)
def test_imports_point_down(module):
    assert [name for name in imports_of(module) if floor_of(name) > floor_of(module)] == []


@pytest.mark.parametrize("module", LOADABLE)
def test_every_module_says_what_it_shows(module):
    loaded = importlib.import_module(module)
    assert loaded.__doc__
    assert loaded.__all__ == sorted(loaded.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(loaded, name) for name in loaded.__all__)


def test_about_fifteen_names_at_the_top():
    assert 5 <= len(holdfast.__all__) <= 20
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        holdfast.Nonsense  # noqa: B018


def test_public_names_are_seen_before_they_are_loaded():
    assert set(holdfast.__all__) <= set(dir(holdfast))


def test_the_package_is_typed():
    assert (SOURCE / "py.typed").exists()


@pytest.mark.extended
def test_a_misspelt_name_is_a_type_error(tmp_path):
    (tmp_path / "typo.py").write_text("from holdfast import FileStorage, FileStorag\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", sys.executable, "typo.py"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert 'has no attribute "FileStorag"' in answer.stdout
    assert "Found 1 error" in answer.stdout


def test_public_functions_and_classes_are_documented():
    undocumented = [
        f"{module}.{name}"
        for module in LOADABLE
        for name in importlib.import_module(module).__all__
        if inspect.isroutine(member := getattr(importlib.import_module(module), name)) or inspect.isclass(member)
        # On Python 3.10 an alias of a type passes for a class.
        if not isinstance(member, GenericAlias) and not member.__doc__
    ]
    assert undocumented == []
