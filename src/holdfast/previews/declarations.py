"""What a source declares, by patterns for single lines: good enough to find one's way, in any state of the source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

__all__ = ["MOST_IMPORTING", "Declaration", "declarations", "imports"]

_LONGEST = 300
_DEEPEST = 2
_MOST_COLUMNS = 40
MOST_IMPORTING = 2_000
"""In how many lines imports are looked for."""


@dataclass(frozen=True)
class Declaration:
    """Something declared: its line, how deep it stands, its bare name, the line as it is written, and what it is of."""

    number: int
    depth: int
    name: str
    signature: str
    owner: str = ""


_VISIBLE = (
    "public|private|protected|static|final|abstract|sealed|override|open|internal|default|synchronized|async|virtual"
)
_C_WORDS = r"(?:[A-Za-z_][\w:<>,*&\[\]]* ){1,6}[*&]*"
_NO_C_WORD = r"(?!(?:return|else|if|for|while|switch|case|throw|new|delete|goto|typedef|using|await)\b)"
_SQL_THINGS = "TABLE|VIEW|FUNCTION|PROCEDURE|INDEX|TRIGGER|TYPE|SCHEMA|SEQUENCE|EXTENSION|DATABASE|ROLE|POLICY"
# Each is matched at the start of a line whose room is single spaces, so that no pattern can try many ways to divide it.
_DECLARED = {
    "Python": r"(?:async )?(?:def|class) (\w+)|([A-Z][A-Z0-9_]+)(?: ?:[^=]+)? = ",
    "Rust": r"(?:pub(?:\([\w: ]+\))? )?(?:default |const |async |unsafe |extern (?:\"\w+\" )?)*"
    r"(?:fn|struct|enum|trait|union|mod|type|static|const|macro_rules!) (\w+)|impl\b(?:<[^{]*?>)? ?([^{]{1,120})",
    "Go": r"func (?:\([^)]*?(?P<owner>\w+)(?:\[[^\]]*\])?\) ?)?(\w+)|(?:type|var|const) (\w+)",
    "JavaScript": r"(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:async )?"
    r"(?:function ?\*? ?(\w+)|(?:class|interface|enum|namespace|type) (\w+)|(?:const|let|var) (\w+)[^=]{0,80}=)"
    r"|(?:(?:public|private|protected|static|readonly|async|get|set|override) )*([A-Za-z_$#][\w$]*) ?\([^;=]*\{$",
    "Java": rf"(?:@\w+ )?(?:(?:{_VISIBLE}|data|partial) )*"
    r"(?:(?:class|interface|enum|record|struct|object|namespace|trait|fun|val) (\w+)"
    r"|[\w<>\[\],.? ]{1,80} (\w+) ?\([^;=]*[{,(]$)",
    "C": r"(?:class|struct|enum(?: class)?|union|namespace) (\w+)[^;]*$|# ?define (\w+)|typedef\b.*\b(\w+);$"
    rf"|{_NO_C_WORD}{_C_WORDS}([\w:~]+) ?\([^;]*$",
    "Ruby": r"def (?:self\.)?([\w?!=.]+)|(?:class|module) ([\w:]+)|([A-Z][A-Z0-9_]+) = ",
    "PHP": r"(?:(?:public|private|protected|static|abstract|final) )*"
    r"(?:function &?(\w+)|(?:class|interface|trait|enum) (\w+)|const (\w+))",
    "shell": r"(?:function )?([\w:-]+) ?\(\) ?\{?|function ([\w:-]+)|(?:export |readonly )([A-Z_][A-Z0-9_]*)=",
    "SQL": r"CREATE (?:OR REPLACE )?(?:TEMP(?:ORARY)? |UNIQUE |MATERIALIZED |UNLOGGED )*"
    rf"((?:{_SQL_THINGS})\b[^(;]{{1,120}})"
    r"|ALTER TABLE (?:ONLY )?([\w.\"`]+)|ADD CONSTRAINT (\w+)|INSERT INTO ([\w.\"`]+)|COPY ([\w.\"`]+)",
    "CSS": r"(@[\w-]+[^{;]{0,100})\{|([.#\w:*\[&>][^{};]{0,120})\{",
}
_DECLARED["TypeScript"] = _DECLARED["JavaScript"]
_DECLARED[""] = "|".join(rf"(?:{_DECLARED[name]})" for name in ("Python", "Rust", "Ruby", "Java"))
_PATTERNS = {name: re.compile(words, re.IGNORECASE if name == "SQL" else 0) for name, words in _DECLARED.items()}
_NO_NAMES = frozenset({"if", "for", "while", "switch", "catch", "return", "else", "do", "function", "with", "elif"})
_IMPORT = re.compile(
    r"from ([\w.]+) import\b|import (?:[\w*{}$, ]+ from )?[\"']([^\"']+)[\"']|import (?:static )?([\w.*]+)"
    r"|(?:pub )?use ([\w:]+)|# ?include [<\"]([^>\"]+)[>\"]|require(?:_relative)? ?\(?[\"']([^\"']+)[\"']"
    r"|(?:const|let|var) .{1,80}= require\([\"']([^\"']+)[\"']|\w* ?\"([\w./-]+)\"$"
)
_COLUMN = re.compile(r"[\"`\[]?(\w+)[\"`\]]? \w")
_NO_COLUMN = frozenset(
    {"constraint", "primary", "unique", "foreign", "check", "key", "index", "partition", "exclude", "like"}
)


def declarations(lines: Sequence[str], indices: Sequence[int], kind: str) -> list[Declaration]:
    """Return what lines declare in a source of that kind, such as 'Go source'; what is local is left out."""
    language = kind.removesuffix(" source")
    pattern = _PATTERNS.get(language, _PATTERNS[""])
    if language == "SQL":
        found = _declared_at(pattern, lines, indices, 0)
        return [_with_columns(one, lines) for one in found]
    return _outer(pattern, lines, indices)


def imports(lines: Sequence[str], kind: str) -> list[str]:
    """Return the names of what is imported in the first 2,000 lines, each once, in their order."""
    if kind.startswith(("SQL", "CSS", "shell")):
        return []
    found = (_IMPORT.match(_single_spaced(line)) for line in lines[:MOST_IMPORTING] if line)
    names = [next(name for name in match.groups() if name) for match in found if match and any(match.groups())]
    return list(dict.fromkeys(names))


def _outer(pattern: re.Pattern[str], lines: Sequence[str], indices: Sequence[int]) -> list[Declaration]:
    """Return the declarations of the two outermost levels at which there are any. Deeper lines are not even read."""
    found: list[Declaration] = []
    level = 0
    for equal in _by_indent(lines, indices):
        if level < _DEEPEST and (declared := _declared_at(pattern, lines, equal, level)):
            found += declared
            level += 1
    return sorted(found, key=lambda one: one.number)


def _by_indent(lines: Sequence[str], indices: Sequence[int]) -> Iterator[list[int]]:
    """Yield the indices of the lines that are equally far indented, from the outermost ones on."""
    by_indent: dict[int, list[int]] = {}
    for index in indices:
        by_indent.setdefault(len(lines[index]) - len(lines[index].lstrip()), []).append(index)
    yield from (by_indent[indent] for indent in sorted(by_indent))


def _declared_at(
    pattern: re.Pattern[str], lines: Sequence[str], indices: Sequence[int], depth: int
) -> list[Declaration]:
    return [one for index in indices if (one := _declared(pattern, index + 1, lines[index], depth))]


def _single_spaced(line: str) -> str:
    bare = line[:_LONGEST].strip()
    return " ".join(bare.split()) if "  " in bare or "\t" in bare else bare


def _declared(pattern: re.Pattern[str], number: int, line: str, depth: int) -> Declaration | None:
    bare = _single_spaced(line)
    match = pattern.match(bare)
    if match is None:
        return None
    owner = match.groupdict().get("owner") or ""
    name = next((found for found in match.groups()[bool(owner) :] if found), "")
    if not name or name in _NO_NAMES:
        return None
    return Declaration(number, depth, " ".join(name.split()), bare.rstrip(" {:("), owner)


def _with_columns(table: Declaration, lines: Sequence[str]) -> Declaration:
    """Return a table with the names of its columns, which stand on the lines that follow."""
    if not table.name.upper().startswith("TABLE"):
        return replace(table, depth=0)
    columns = list(_columns(lines[table.number : table.number + _MOST_COLUMNS]))
    listed = f"{table.name.strip()} ({', '.join(columns)})" if columns else table.signature
    return Declaration(table.number, 0, listed, listed)


def _columns(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if line.lstrip().startswith(")"):
            return
        match = _COLUMN.match(_single_spaced(line))
        if match and match[1].lower() not in _NO_COLUMN:
            yield match[1]
