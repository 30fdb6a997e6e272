"""What is added to a search index, and how much of it at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from holdfast.errors import InvalidTypeError

__all__ = ["Addition", "groups_of", "size_of"]

_CHARACTERS_AT_ONCE = 100_000
_CHARACTERS_IN_A_GROUP = 64_000
_MOST_BYTES_OF_A_CHARACTER = 4
# Counted for each content, so that a million tiny ones are bounded too.
_OVERHEAD = 1_000


@dataclass(frozen=True)
class Addition:
    """A text to be found by its words and, at its beginning, by those of *title*. *labels* come back with its hits.

    An echo says again what other texts said, as the answer of an earlier search does: it is found after all of these.
    """

    reference: str
    text: str = field(repr=False)
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_echo: bool = False

    def __post_init__(self) -> None:
        for name in ("reference", "text", "title"):
            if not isinstance(value := getattr(self, name), str):
                raise InvalidTypeError(f"{name} must be a string, got {type(value).__name__}")
        if not isinstance(self.labels, Mapping):
            raise InvalidTypeError(f"labels must be a mapping of strings, got {type(self.labels).__name__}")
        for name, value in self.labels.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise InvalidTypeError(
                    f"labels must be strings with names that are strings, got {name!r:.40}: {value!r:.40}"
                )
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))

    @property
    def largest_size(self) -> int:
        """What `size_of` may say of it at most."""
        return _OVERHEAD + _MOST_BYTES_OF_A_CHARACTER * (len(self.title) + len(self.text))


def groups_of(additions: Iterable[Addition], max_bytes: int) -> Iterator[list[Addition]]:
    """Give *additions* in groups that fit in together and are soon done. One that is large is a group of its own."""
    group: dict[str, Addition] = {}
    characters = size = 0
    for addition in additions:
        if not isinstance(addition, Addition):
            raise InvalidTypeError(f"what is added must be an Addition, got {type(addition).__name__}")
        characters, size = characters + len(addition.text), size + addition.largest_size
        if group and (characters > _CHARACTERS_IN_A_GROUP or size > max_bytes or addition.reference in group):
            yield list(group.values())
            group, characters, size = {}, len(addition.text), addition.largest_size
        group[addition.reference] = addition
    if group:
        yield list(group.values())


def size_of(addition: Addition) -> int:
    """Return how many bytes an addition counts for."""
    texts = (addition.title, addition.text)
    parts = (text[at : at + _CHARACTERS_AT_ONCE] for text in texts for at in range(0, len(text), _CHARACTERS_AT_ONCE))
    return _OVERHEAD + sum(
        len(part) if part.isascii() else len(part.encode("utf-8", "surrogatepass")) for part in parts
    )
