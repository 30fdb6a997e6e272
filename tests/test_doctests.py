"""Every example in a docstring of the package runs, and gives what it says it gives."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_hold(name):
    try:
        module = importlib.import_module(name)
    except ImportError as missing_extra:
        pytest.skip(str(missing_extra))
    failed, tried = doctest.testmod(module)
    assert tried, "no docstring holds the example"
    assert failed == 0, "see what was printed"


def test_there_are_examples():
    assert "holdfast.testing.providers" in WITH_EXAMPLES


def test_an_example_that_does_not_hold_is_told(tmp_path, monkeypatch, capsys):
    (tmp_path / "with_a_wrong_example.py").write_text('"""Counts.\n\n>>> 1 + 1\n3\n"""\n', encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError, match="see what was printed"):
        test_the_examples_hold("with_a_wrong_example")
    assert "Expected:\n    3\nGot:\n    2" in capsys.readouterr().out
