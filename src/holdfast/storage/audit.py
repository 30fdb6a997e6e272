"""What an audit of a store says. `audit_files` and `audit_s3` carry audits out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Checked", "Finding"]

Kind = Literal["unreadable", "incomplete", "damaged", "unknown type", "leftover", "empty"]
Role = Literal["entry", "trace", "neighbour"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with what is called *name*. Fixable is what can be mended without losing a whole content."""

    name: str
    kind: Kind
    what: str
    fixable: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at: an entry, a trace that storing leaves beside entries, or some odd neighbour."""

    name: str
    role: Role
    size: int = 0
    findings: tuple[Finding, ...] = ()
