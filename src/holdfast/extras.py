"""What is loaded only when it is needed: optional dependencies, and public names of packages."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType

from holdfast.errors import MissingExtraError

__all__ = ["import_extra", "lazily"]


def import_extra(module: str, *, extra: str) -> ModuleType:
    """Import *module*, which ``holdfast[extra]`` brings or builds upon."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing.startswith("holdfast"):
            raise
        raise MissingExtraError(
            f"{missing} is not installed; run: pip install 'holdfast[{extra}]'", name=missing
        ) from error


def lazily(package: str, homes: Mapping[str, str], *, extra: str = "") -> Callable[[str], object]:
    """Return a module ``__getattr__`` that loads each public name from its home when it is first used."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_extra(homes[name], extra=extra), name)

    return load
