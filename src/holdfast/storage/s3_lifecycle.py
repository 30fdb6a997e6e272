"""The rule by which S3 itself expires old objects, for when no process is left to do it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable
from typing import Any

from holdfast.errors import InvalidValueError

__all__ = ["expiry_rule", "rule_id", "with_rule", "without_rule"]

_DAY = 86_400
# What S3 takes, as a whole number of days.
_MOST_DAYS = 2**31 - 1
_PLAIN = re.compile(r"[A-Za-z0-9._/-]{1,200}")


def expiry_rule(prefix: str, seconds: float) -> dict[str, Any]:
    """Return a rule that expires what is under *prefix* after *seconds*, rounded up to whole days."""
    if not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST_DAYS * _DAY:
        raise InvalidValueError(f"seconds must be a positive number of at most {_MOST_DAYS} days, got {seconds!r}")
    return {
        "ID": rule_id(prefix),
        "Filter": {"Prefix": prefix},
        "Status": "Enabled",
        "Expiration": {"Days": math.ceil(seconds / _DAY)},
    }


def rule_id(prefix: str) -> str:
    """Name the rule of *prefix*: the same each time, and another for each other prefix."""
    if not prefix:
        raise InvalidValueError(
            "a storage without a prefix has no lifecycle rule, because it would expire every object in the bucket; "
            "give the storage a prefix of its own, such as prefix='agents'"
        )
    plain = prefix.strip("/")
    if _PLAIN.fullmatch(plain):
        return f"holdfast-{plain}"
    return (
        f"holdfast-{re.sub(r'[^A-Za-z0-9._/-]', '_', plain)[:100]}-{hashlib.sha256(prefix.encode()).hexdigest()[:16]}"
    )


def with_rule(rules: Iterable[dict[str, Any]], rule: dict[str, Any]) -> list[dict[str, Any]]:
    """Return *rules* with *rule* in place of the one of its ID, or at the end."""
    given = list(rules)
    if all(other.get("ID") != rule["ID"] for other in given):
        return [*given, rule]
    return [rule if other.get("ID") == rule["ID"] else other for other in given]


def without_rule(rules: Iterable[dict[str, Any]], identifier: str) -> list[dict[str, Any]]:
    """Return *rules* without the one of this ID."""
    return [rule for rule in rules if rule.get("ID") != identifier]
