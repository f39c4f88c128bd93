"""The kinds of value a key of a runbook can have; the parser and the JSON Schema both read them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

# Printable and without space at either end, so that what is written in a template can be the same name.
NAME_PATTERN: Final = r"[^\s{}](?:[^\x00-\x1f{}]*[^\s{}])?"
NOT_BLANK: Final = r"\s*\S[\s\S]*"


@dataclass(frozen=True)
class Text:
    """A text; `expected` completes the sentence "must be …"."""

    expected: str
    max_length: int
    pattern: str = NOT_BLANK
    choices: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def accepts(self, value: str) -> bool:
        """Tell whether the value has the length and the shape that are asked for."""
        if not 0 < len(value) <= self.max_length:
            return False
        if self.choices:
            return value in self.choices
        return _compiled(self.pattern).fullmatch(value) is not None


@dataclass(frozen=True)
class Parameter:
    """A text of any content, the empty one included, in which templates may stand."""

    max_length: int


@dataclass(frozen=True)
class Integer:
    """A whole number."""

    minimum: int
    maximum: int


@dataclass(frozen=True)
class Block:
    """A mapping with known keys."""

    section: Section


@dataclass(frozen=True)
class Blocks:
    """A list of mappings with known keys."""

    section: Section
    minimum: int = 0


@dataclass(frozen=True)
class Texts:
    """A mapping whose keys the author names."""

    names: Text
    values: Text | Parameter


@dataclass(frozen=True)
class NamedBlocks:
    """A mapping whose keys the author names, with a list of mappings under each."""

    names: Text
    blocks: Blocks


Form = Text | Parameter | Integer | Block | Blocks | Texts | NamedBlocks


@dataclass(frozen=True)
class Key:
    """One key of a section."""

    name: str
    form: Form
    description: str
    required: bool = False


@dataclass(frozen=True)
class Section:
    """A mapping with known keys; `refused` holds keys that it cannot have though its like has, each with the reason."""

    name: str
    description: str
    keys: tuple[Key, ...]
    refused: tuple[tuple[str, str], ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Key]:
        """The keys by their names."""
        return {key.name: key for key in self.keys}


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
