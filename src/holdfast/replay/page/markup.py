"""HTML and SVG, built so that nothing is taken for markup that was not meant as markup."""

from __future__ import annotations

from html import escape
from typing import TypeAlias
from unicodedata import category

__all__ = ["Attribute", "Child", "Markup", "cut", "cut_within", "element", "join", "name"]


class Markup(str):
    """Text that is markup already. Any other string is escaped where it becomes a part of an element."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | None"
Attribute: TypeAlias = "str | int | float | bool | None"

_VOID = frozenset({"input", "link", "meta"})
# Control, format and surrogate characters, and the separators of lines and paragraphs.
_UNSHOWN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = "\u200c\u200d"


def element(tag: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """Return an element. `class_` is class, `aria_label` is aria-label; None leaves a child or an attribute out."""
    start = f"<{tag}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(start if tag in _VOID else f"{start}{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Return one after the other, each escaped unless it is markup."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def cut(text: str, most: int = 120) -> str:
    """Return *text* on one line of at most *most* characters, without what is invisible or turns text around."""
    line = " ".join("".join(_shown(c) for c in text[: 4 * most]).split())
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}…"


def cut_within(text: str, most: int) -> str:
    """Return *text* as `cut` does, but with its end: names of one family differ there."""
    line = cut(text, 4 * most)
    return line if len(line) <= most else f"{line[: most // 3].rstrip()}…{line[most // 3 + 1 - most :].lstrip()}"


def name(text: str, most: int = 120) -> Markup:
    """Return a name that came from outside: cut, and apart from the direction of the text around it."""
    whole = cut(text, 400)
    return element("bdi", cut_within(text, most) or "(no name)", title=None if len(whole) <= most else whole)


def _attribute(key: str, value: Attribute) -> str:
    key = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {key}" if value is True else f' {key}="{escape(str(value))}"'


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else escape(child)


def _shown(character: str) -> str:
    if character in "\t\n\r":
        return " "
    return "\ufffd" if category(character) in _UNSHOWN and character not in _JOINERS else character
