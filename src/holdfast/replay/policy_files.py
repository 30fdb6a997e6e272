"""Files in which policies stand: YAML or JSON, small, and nothing but plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import InvalidTypeError, InvalidValueError
from holdfast.extras import import_extra

__all__ = ["ENDINGS", "read_policy"]

ENDINGS = (".yaml", ".yml", ".json")

_LARGEST_FILE = 100_000
_MOST_VALUES = 10_000
_DEEPEST = 20


def read_policy(path: Path) -> Mapping[str, Any]:
    """Return the options in a file. Raises an error that names the file for anything else."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        raise InvalidValueError(f"the policy {path} cannot be read: {_reason(error)}") from None
    if len(content) > _LARGEST_FILE:
        raise InvalidValueError(f"the policy {path} has more than {_LARGEST_FILE:,} bytes; that is no configuration")
    config = _parsed(path, content)
    if not isinstance(config, Mapping):
        raise InvalidTypeError(
            f"the policy {path} must be a mapping of a manager's options, as docs/configuration.md says"
        )
    _check_plain(path, config)
    return config


def _parsed(path: Path, content: bytes) -> Any:
    try:
        if path.suffix.lower() == ".json":
            return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"the policy {path} is no JSON: {error}") from None
    yaml = import_extra("yaml", extra="cli")
    try:
        _check_simple(yaml, content)
        return yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidValueError(f"the policy {path} is no YAML: {' '.join(str(error).split()):.200}") from None


def _check_simple(yaml: Any, content: bytes) -> None:
    """Refuse aliases, which can stand for more than memory holds, tags, and depths that take YAML's parser for ever."""
    depth = 0
    for event in yaml.parse(content, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InvalidValueError(f"more than {_DEEPEST} levels have no place in a policy")
        if isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None:
            raise InvalidValueError("aliases and tags have no place in a policy")


def _check_plain(path: Path, config: Any) -> None:
    """Refuse what JSON has no word for, and what is too much for a configuration."""
    waiting = [config]
    for _ in range(_MOST_VALUES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += [*value, *value.values()] if all(isinstance(name, str) for name in value) else [value.keys()]
        elif isinstance(value, list):
            waiting += value
        elif not _is_plain(value):
            raise InvalidTypeError(
                f"the policy {path} must hold texts, numbers, true, false, null, lists and mappings by text alone, "
                f"got {type(value).__name__}"
            )
    raise InvalidValueError(f"the policy {path} stands for more than {_MOST_VALUES:,} values; that is no configuration")


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _reason(error: OSError | ValueError) -> str:
    return getattr(error, "strerror", None) or str(error)
