"""What histories are about: texts in many scripts and lengths, inputs of tools, an image and a document."""

from __future__ import annotations

import base64
from typing import Any

from holdfast.testing.histories.dice import Dice

__all__ = ["PDF", "PDF_BASE64", "PNG", "PNG_BASE64", "Contents"]

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)
PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
PNG_BASE64 = base64.b64encode(PNG).decode()
PDF_BASE64 = base64.b64encode(PDF).decode()

_PHRASES = (
    "the quick brown fox jumps over the lazy dog and runs on, see line 42 of src/app.py for more\n",
    'E   AssertionError: expected 3, got 4\n  File "/app/tests/test_cart.py", line 118, in test_total\n',
    '{"id": 1042, "name": "widget", "tags": ["a", "b"], "price": 12.5, "note": null}, ',
    "0123456789abcdef",
    "我们需要先读取配置文件，然后再运行测试。日本語のテキストも混ざっています。한국어 문장도 있다. ",
    "🙂👩‍👩‍👧‍👦🇩🇪🏳️‍🌈👍🏽 ok ",
    "e\u0301a\u0308o\u0302n\u0303 Z\u0351\u036b\u0343a\u0360\u0315l\u0321g\u0322o\u0327 ",
    "\x1b[31merror\x1b[0m\t\x00\x07\r\n\u200b\ufeff\u202eabc\u202c\x85 ",
    "Привет, мир. שלום עולם. مرحبا بالعالم. नमस्ते दुनिया. ",
)
_LONGEST = 60_000
_SCRIPTS = tuple(phrase * (_LONGEST // len(phrase) + 1) for phrase in _PHRASES)
_LENGTHS = (20, 20, 20, 120, 120, 600, 3_000)
_HUGE_LENGTHS = (5_000, 12_000, 25_000, 50_000)
_OPENINGS = ("ok", "Done:", "error:", "見る", "🙂", "Result 1", "<html>", "#")


class Contents:
    """What is said in a history, whatever its dialect."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice

    def text(self) -> str:
        """Never blank, and rarely long."""
        return self._slice(self._dice.pick(_LENGTHS))

    def result_text(self) -> str:
        """Sometimes so long that any budget of tokens bites."""
        if self._dice.chance(3):
            return self._slice(self._dice.pick(_HUGE_LENGTHS), at_least=4_990)
        return self.text()

    def input(self) -> dict[str, Any]:
        """What a tool is called with."""
        kind = self._dice.below(4)
        if kind == 0:
            return {}
        if kind == 1:
            return {"path": f"src/module_{self._dice.below(50)}.py"}
        if kind == 2:
            return {"query": self.text(), "limit": self._dice.below(100)}
        return {"edits": [{"old": self.text(), "new": ""}], "dry_run": False, "at": None, "scale": 0.5}

    def _slice(self, longest: int, at_least: int = 0) -> str:
        dice = self._dice
        script = dice.pick(_SCRIPTS)
        length = at_least + dice.below(longest - at_least)
        start = dice.below(100)
        return dice.pick(_OPENINGS) + script[start : start + length]
