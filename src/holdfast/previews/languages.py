"""Which programming language a text is written in, told by how many of its lines look like it."""

from __future__ import annotations

import re

from holdfast.previews.sampling import Sample

__all__ = ["named_source", "source_kind"]

_BY_CONTENT_TYPE = (
    (re.compile(r"python"), "Python source"),
    (re.compile(r"typescript"), "TypeScript source"),
    (re.compile(r"javascript|ecmascript"), "JavaScript source"),
    (re.compile(r"sql"), "SQL source"),
    (re.compile(r"rust"), "Rust source"),
    (re.compile(r"x-go|golang"), "Go source"),
    (re.compile(r"java"), "Java source"),
    (re.compile(r"c\+\+|x-c\b|x-csrc|x-chdr"), "C source"),
    (re.compile(r"ruby"), "Ruby source"),
    (re.compile(r"php"), "PHP source"),
    (re.compile(r"x-sh|shellscript|bash"), "shell source"),
    (re.compile(r"css"), "CSS source"),
)
_SQL_TYPES = (
    "integer|int|bigint|text|varchar|timestamp|boolean|numeric|serial|character varying|uuid|jsonb?|date|datetime"
)
_BRACED = (
    r"(?:if|for|while|switch) \(.*\) ?\{?$|\}? ?else\b.*\{?$|case .+:$|break;$|return\b.*;$|[\w.>*-]+\(.*\);$"
    r"|[\w.>*\[\]-]+ [-+|&]?= .*;$"
)
_LINES = {
    "Python source": (
        r"(?:async )?def \w+\(|class \w+[(:]|from [\w.]+ import .|import [\w.]+(?: as \w+)?$|@\w[\w.]*(?:\(.*)?$",
        r"(?:if|elif|for|while|with|except)\b.*:$|(?:try|else|finally):$",
        r"return\b(?!.*;$)|self\.\w(?!.*;$)|raise \w|\"\"\"|\w+(?:: [\w\[\], |]+)? = [^;]+$",
    ),
    "Rust source": (
        r"(?:pub(?:\([\w ]+\))? )?(?:async )?(?:unsafe )?(?:fn|struct|enum|impl|trait|mod|use)\b.*[{;(,<]$",
        r"let (?:mut )?\w|match .+\{$|#!?\[\w.*\]$|assert(?:_eq)?!\(|.*\)\?;$|.*=> ",
    ),
    "Go source": (
        r"func .+\{$|package \w+$|type \w+ (?:struct|interface|func)|if err\b.*\{$|.*:= .|defer .",
        r"return .*nil|import \($",
        r"\w+ +\*?[\w.\[\]]+ +`.*`$",
    ),
    "TypeScript source": (
        r"(?:export )?(?:interface|type|enum) \w|(?:const|let) \w+: .|.*\): \w[\w<>\[\]| ]* \{$|import type .",
        r"(?:public|private|protected|readonly) \w+.*: ",
        _BRACED,
    ),
    "JavaScript source": (
        r"(?:export )?(?:default )?(?:async )?function\b|(?:const|let|var) [\w{\[]|.*=> [{(]|\}\);?$|module\.exports",
        r"import .+ from ['\"].|.*\brequire\(",
        _BRACED,
    ),
    "Java source": (
        r"(?:public|private|protected)\b.*[{;(,]$|import [\w.]+(?:\.\*)?;$|package [\w.]+;$",
        r"@Override$|final \w+ \w+.*;$",
        _BRACED,
    ),
    "C source": (
        r"#(?:include|define|ifdef|ifndef|endif|pragma)\b",
        r"(?:static|const|struct|void|int|char|unsigned|typedef|template|namespace|using|std::\w+)\b.*[;{(,)]$",
        r"\w+(?: \*?|\*+ ?)\w+(?:\[\w*\])?(?: = .*)?;$|\w+->\w",
        _BRACED,
    ),
    "SQL source": (
        r"(?i:create|alter|insert into|select|drop|primary key|constraint|comment on|grant|delete from)\b [\w\"`(*]",
        rf"[\"`]?\w+[\"`]? (?i:{_SQL_TYPES})\b",
    ),
    "Ruby source": (
        r"def [\w.?!]+(?:\(.*\))?$|end$|require(?:_relative)? ['\"].|module [A-Z]\w*$|class [A-Z]\w*(?: < .+)?$",
        r".* do(?: \|.*\|)?$",
    ),
    "PHP source": (r"<\?php|\$\w+ ?=.*;$|(?:public |private |protected )?function \w+\(|\$this->|namespace [\w\\]+;$",),
    "shell source": (r"#!/.*sh$|(?:if|elif) \[|fi$|done$|esac$|then$|echo .|export \w+=|\w+\(\) ?\{$|set -[a-z]+",),
    "CSS source": (r"[.#@][\w-]+(?:[ ,:>.#].*)?\{$|[a-z-]+: [^;()]+;$",),
}
_PATTERNS = {kind: re.compile(rf"\s*(?:{'|'.join(lines)})") for kind, lines in _LINES.items()}
_NEUTRAL = re.compile(r"\s*(?:[{}()\[\];,]+$|//|#|/?\*|--)")
_ENDS_LIKE_CODE = re.compile(r".*[{};:,()\[\]\\]$|\s*(?://|#|/?\*|--)")
_TELLING = 160
_ENOUGH, _ENOUGH_WITH_CODE_ENDS = 0.3, 0.12


def named_source(content_type: str) -> str | None:
    """Return the kind of source that a content type names, if it names one."""
    bare = content_type.split(";")[0].lower()
    return next((kind for pattern, kind in _BY_CONTENT_TYPE if pattern.search(bare)), None)


def source_kind(sample: Sample) -> str | None:
    """Return 'Python source' and the like, or None if the lines look like no source."""
    telling = [line[:_TELLING] for line in sample.lines if not _NEUTRAL.match(line)]
    if not telling:
        return None
    counts = {kind: sum(map(bool, map(pattern.match, telling))) for kind, pattern in _PATTERNS.items()}
    kind = max(counts, key=lambda kind: counts[kind])
    share = counts[kind] / len(telling)
    return kind if share > _ENOUGH or (share > _ENOUGH_WITH_CODE_ENDS and sample.share(_ENDS_LIKE_CODE) > 0.5) else None
