"""The list of facts that a summary left out, and what is to become of a summary that left out too many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from holdfast.compression.fact_check import ReferredFact, WholeTokens
from holdfast.compression.facts import facts_in
from holdfast.compression.summary_messages import KEPT_FACTS
from holdfast.compression.summary_request import without_tags
from holdfast.errors import InvalidTypeError, InvalidValueError

__all__ = ["Completed", "FactPolicy", "Facts"]

Facts: TypeAlias = Literal["accept", "complete", "replace"]

_ENOUGH = 0.5
_SHARE_FOR_LIST, _FEWEST_TOKENS = 0.25, 60
# Of the list: there facts are only named, where not all that was said about them fits.
_SHARE_FOR_NAMES = 0.6
_LONGEST_LINE, _LONGEST_SOURCE, _FEWEST_DIGITS = 160, 40, 4
_QUOTES = "\"'`"
# No list has room for more.
_MOST_FACTS = 500


class Completed(NamedTuple):
    """A summary with the list, how many facts that added, and how many there was no room for."""

    text: str
    added: int = 0
    left_out: int = 0

    def __str__(self) -> str:
        added = f", {_counted(self.added)} added" if self.added else ""
        return f"{added}, {_counted(self.left_out)} did not fit" if self.left_out else added


@dataclass(frozen=True)
class FactPolicy:
    """What becomes of a summary without the facts that are still referred to: see `Summarize`."""

    facts: Facts = "complete"
    enough_facts: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.facts, str) or self.facts not in get_args(Facts):
            allowed = ", ".join(map(repr, get_args(Facts)))
            raise InvalidValueError(f"facts must be one of {allowed}, got {self.facts!r:.80}")
        enough = self.enough_facts
        if enough is None:
            return
        if not isinstance(enough, (int, float)) or isinstance(enough, bool):
            raise InvalidTypeError(f"enough_facts must be a share from 0 to 1, got {type(enough).__name__}")
        if not 0 <= enough <= 1:
            raise InvalidValueError(f"enough_facts must be a share from 0 to 1, got {enough!r}")
        if self.facts != "replace":
            raise InvalidValueError(
                f"enough_facts works with facts='replace' only, got facts={self.facts!r}; leave it out"
            )

    @property
    def checks(self) -> bool:
        """Whether summaries are looked at."""
        return self.facts != "accept"

    def room(self, longest: int) -> int:
        """Return how many tokens the list may take beside a summary of at most *longest* tokens."""
        return max(_FEWEST_TOKENS, int(longest * _SHARE_FOR_LIST)) if self.checks else 0

    def flaw_of(self, summary: str, referred: Sequence[ReferredFact]) -> str | None:
        """Return why truncation is to take the place of a summary: it may hold too few of the facts.

        Those that were only listed behind the earlier one do not count: its summarizer never saw them.
        """
        values = [fact.value for fact in referred if not fact.is_listed]
        if self.facts != "replace" or not values:
            return None
        held = len(WholeTokens(values).in_text(summary))
        if held >= len(values) * (_ENOUGH if self.enough_facts is None else self.enough_facts):
            return None
        return f"its summary held {held:,} of {_counted(len(values))} that are still referred to"

    def completed(
        self, summary: str, referred: Sequence[ReferredFact], *, room: int, count: Callable[[str], int]
    ) -> Completed:
        """Return *summary* with the list of what it lacks of *referred*, in at most *room* tokens more."""
        sought = WholeTokens(fact.value for fact in referred)
        held = sought.in_text(summary)
        missing = [fact for fact in referred if fact.value not in held]
        if not missing or not self.checks:
            return Completed(summary)
        text = summary + _listed(missing[:_MOST_FACTS], sought, room=room, count=count)
        added = len(sought.in_text(text)) - len(held)
        return Completed(text, added, len(missing) - added)


def _counted(facts: int) -> str:
    return f"{facts:,} fact{'' if facts == 1 else 's'}"


def _listed(missing: Sequence[ReferredFact], sought: WholeTokens, *, room: int, count: Callable[[str], int]) -> str:
    """Return the lines in which facts stood, then only the facts that are left, as far as there is room."""
    # Counted by itself: behind a long summary, of which only a sample is counted, it may seem larger by a fifth.
    listed = title = f"\n{KEPT_FACTS}"
    for_names = max(int((room - count(title)) * _SHARE_FOR_NAMES), 0)
    rest = {fact.value: count(f", {_name(fact.value)}") if _is_telling(fact.value) else 0 for fact in missing}
    for fact in missing:
        if fact.value not in rest:
            continue
        line = _line(fact, sought)
        if line == f"- {_name(fact.value)}":
            continue
        shown = sought.in_text(line) & rest.keys()
        longer, tokens_of_rest = f"{listed}\n{line}", sum(rest.values()) - sum(rest[value] for value in shown)
        if count(longer) <= room - min(for_names, tokens_of_rest):
            listed = longer
            for value in shown:
                del rest[value]
    listed = _with_names(listed, filter(_is_telling, rest), room=room, count=count)
    return "" if listed == title else listed


def _with_names(listed: str, values: Iterable[str], *, room: int, count: Callable[[str], int]) -> str:
    """Return a list with one line more, of all the facts that there is room to name."""
    joint = "\n- "
    for value in values:
        longer = f"{listed}{joint}{_name(value)}"
        if count(longer) <= room:
            listed, joint = longer, ", "
    return listed


def _is_telling(value: str) -> bool:
    """Say whether a fact says something without the line in which it stood, as the number of an order may."""
    return not value.isdigit() or len(value) >= _FEWEST_DIGITS


def _name(value: str) -> str:
    """Return a fact so that it is one by itself: a word that was quoted is one only in quotes."""
    if " " not in value and value in facts_in([value]):
        return _clean(value)
    mark = next((mark for mark in _QUOTES if mark not in value), _QUOTES[0])
    return _clean(f"{mark}{value}{mark}")


def _line(fact: ReferredFact, sought: WholeTokens) -> str:
    """Return the line in which a fact stood, and whose it was. It names the fact only if that does not stand out."""
    excerpt = _excerpt(fact)
    named = "" if fact.value in sought.in_text(excerpt) else f"{_clean(fact.value)}: "
    source = f" ({_clean(fact.source[:_LONGEST_SOURCE])})" if fact.source else ""
    return f"- {named}{excerpt}{source}"


def _excerpt(fact: ReferredFact) -> str:
    """Return the line of a text around a fact, or what is next to it in a long one."""
    text, end = fact.text, fact.at + len(fact.value)
    earliest, latest = max(fact.at - _LONGEST_LINE, 0), min(end + _LONGEST_LINE, len(text))
    start = max(text.rfind("\n", earliest, fact.at) + 1, earliest)
    newline = text.find("\n", end, latest)
    stop = latest if newline < 0 else newline
    if stop - start > _LONGEST_LINE:
        start = _after_blank(text, max(start, fact.at - _LONGEST_LINE // 4), fact.at)
        stop = _before_blank(text, end, max(min(stop, start + _LONGEST_LINE), end))
    before = "…" if start and text[start - 1] != "\n" else ""
    after = "…" if stop < len(text) and text[stop] != "\n" else ""
    return before + _clean(text[start:stop]).removeprefix("- ") + after


def _after_blank(text: str, start: int, stop: int) -> int:
    return start if start == 0 or (blank := text.find(" ", start, stop)) < 0 else blank + 1


def _before_blank(text: str, start: int, stop: int) -> int:
    return stop if stop == len(text) or (blank := text.rfind(" ", start, stop)) < 0 else blank


def _clean(text: str) -> str:
    """Return *text* in one line that ends nothing it stands in and can be sent."""
    return without_tags(" ".join(text.split())).encode("utf-8", "replace").decode()
