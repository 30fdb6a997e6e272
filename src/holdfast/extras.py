"""What is loaded only when it is needed: optional dependencies, and public names of packages."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from types import ModuleType

from holdfast.errors import MissingExtraError

__all__ = ["import_extra", "lazily", "require_extra"]


def import_extra(module: str, *, extra: str) -> ModuleType:
    """Import *module*, which ``holdfast[extra]`` brings or builds upon."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        if missing.startswith("holdfast"):
            raise
        raise _missing(missing, extra) from error


def require_extra(module: str, *, extra: str) -> None:
    """Raise now if *module* is not installed, without spending the time to import it."""
    if importlib.util.find_spec(module) is None:
        raise _missing(module, extra)


def lazily(module: dict[str, object], homes: Mapping[str, str], *, extra: str = "") -> None:
    """Give a module, by its ``globals()``, public names that are loaded from their homes when first used."""

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        module[name] = value = getattr(import_extra(homes[name], extra=extra), name)
        return value

    module["__getattr__"] = load
    module["__dir__"] = lambda: sorted({*module, *homes})


def _missing(module: str, extra: str) -> MissingExtraError:
    return MissingExtraError(f"{module} is not installed; run: pip install 'holdfast[{extra}]'", name=module)
