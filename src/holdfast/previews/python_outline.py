"""What a Python module declares, by its syntax tree where that can be had safely."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence

from holdfast.previews.declarations import Declaration

__all__ = ["python_declarations"]

_LARGEST = 64_000
# An unknown escape in a string makes the compiler warn, and the text is not ours to warn about.
_ESCAPE = re.compile(r"\\([^\n'\"\\]|\\)")
_DEEPEST = 3


def python_declarations(text: str) -> list[Declaration] | None:
    """Return classes, functions and constants with their lines, or None if the text cannot be parsed in good time."""
    # Before 3.11 a deep tree could exhaust the stack of the interpreter itself.
    if len(text) > _LARGEST or sys.version_info < (3, 11):
        return None
    try:
        module = ast.parse(_ESCAPE.sub("__", text))
        return list(_of_body(module.body, text.split("\n"), 0))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _of_body(body: Sequence[ast.stmt], lines: Sequence[str], depth: int) -> Iterator[Declaration]:
    for statement in body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Declaration(statement.lineno, depth, statement.name, _signature(statement, lines))
            if isinstance(statement, ast.ClassDef) and depth < _DEEPEST:
                yield from _of_body(statement.body, lines, depth + 1)
        elif isinstance(statement, (ast.If, ast.Try)):
            yield from _of_body(statement.body, lines, depth)
        elif not depth and isinstance(statement, (ast.Assign, ast.AnnAssign)):
            yield from _constants(statement, lines)


def _signature(statement: ast.stmt, lines: Sequence[str]) -> str:
    """Return the first line, and what follows of arguments that stand on lines of their own."""
    first = lines[statement.lineno - 1].strip()
    if first.endswith(":"):
        return first[:-1]
    body = getattr(statement, "body", None)
    end = body[0].lineno - 1 if body else statement.lineno
    return " ".join([first, *(line.strip() for line in lines[statement.lineno : min(end, statement.lineno + 20)])])


def _constants(statement: ast.Assign | ast.AnnAssign, lines: Sequence[str]) -> Iterator[Declaration]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    for target in targets:
        if isinstance(target, ast.Name) and not target.id.startswith("__"):
            yield Declaration(statement.lineno, 0, target.id, lines[statement.lineno - 1].strip())
