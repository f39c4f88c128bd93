"""Templates: text with `{{Variable}}` in it, compiled once and filled in for every member.

Filling in is on the hot path of the orchestrator, so what can be known beforehand is: which parts are text, which are
variables, and whether the whole is one variable and keeps its value's type.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SPECIAL_VARIABLES: Final = ("_batch_id", "_batch_start_time")
MAX_NAME: Final = 256

_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_SECRET_PREFIX: Final = re.compile(r"\s*secret\s*:", re.IGNORECASE)
_SECRET: Final = re.compile(r"\s*secret:([A-Za-z0-9_-]{1,127})\s*", re.IGNORECASE)
# Wider than what is accepted in a runbook: whatever some reader might take for a reference.
_SECRET_LIKE: Final = re.compile(r"\{\{\s*secret\s*:", re.IGNORECASE)
_BAD_IN_NAME: Final = re.compile(r"[{}\x00-\x1f\x7f]")


class TemplateError(ValueError):
    """The template is malformed; `index` says where in its text."""

    def __init__(self, message: str, index: int) -> None:
        """Keep the place beside the message."""
        super().__init__(message)
        self.index = index


class UnresolvedVariables(Exception):
    """Some variables have no value; `names` holds them all, sorted."""

    def __init__(self, names: tuple[str, ...], message: str | None = None) -> None:
        """Take the names, and a message where the common one does not fit."""
        super().__init__(message or f"no value for: {', '.join(names)}")
        self.names = names


class SecretInData(UnresolvedVariables):
    """The value of a variable looks like a reference to a secret, which only a runbook may name."""

    def __init__(self, names: tuple[str, ...]) -> None:
        """Take the names of the variables of the template, any of which may hold it."""
        super().__init__(names, f"a reference to a secret stands in the data of: {', '.join(names)}")


class Missing:
    """The type of MISSING."""

    __slots__ = ()


MISSING: Final = Missing()
"""Stands for the value of a variable that has none."""


class Values:
    """What variables can stand for: special ones first, then worker data, then the member's columns."""

    __slots__ = ("_folded", "_sources")

    def __init__(
        self,
        data: Mapping[str, object],
        worker_data: Mapping[str, object],
        specials: Mapping[str, object],
    ) -> None:
        """Keep the three as they are; nothing is copied until a name must be found without regard to case."""
        self._sources = (specials, worker_data, data)
        self._folded: dict[str, object] | None = None

    def find(self, name: str) -> object:
        """Return the value, an empty text for null, MISSING when there is none."""
        for source in self._sources:
            if name in source:
                value = source[name]
                return "" if value is None else value
        if self._folded is None:
            folded: dict[str, object] = {}
            for source in self._sources:
                for key in source:
                    folded.setdefault(key.casefold(), source[key])
            self._folded = folded
        value = self._folded.get(name.casefold(), MISSING)
        return "" if value is None else value


@dataclass(frozen=True, slots=True)
class Template:
    """A text with variables and references to secrets in it; TemplateError when it is malformed."""

    text: str
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The variables it needs, each once, in order of appearance."""
    secrets: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The secrets it refers to, one for each reference."""
    is_whole: bool = field(init=False, repr=False, compare=False)
    """Whether it is one variable and nothing else."""
    is_secret: bool = field(init=False, repr=False, compare=False)
    """Whether it is one reference to a secret and nothing else."""
    # Text and the variable that follows it, the last variable None; a reference to a secret is text here.
    _parts: tuple[tuple[str, str | None], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the text."""
        parts, secrets = _compile(self.text)
        names = tuple(dict.fromkeys(name for _, name in parts if name is not None))
        put = object.__setattr__
        put(self, "_parts", parts)
        put(self, "names", names)
        put(self, "secrets", secrets)
        put(self, "is_whole", len(parts) == 2 and not parts[0][0] and not parts[1][0])  # noqa: PLR2004
        put(self, "is_secret", len(secrets) == 1 and parts[0][0] == f"{{{{secret:{secrets[0]}}}}}" and not names)

    def resolve(self, values: Values) -> object:
        """Return the value of the whole, or the text with every variable filled in."""
        value = self.fill(values)
        if value is MISSING:
            names = {name for name in self.names if values.find(name) is MISSING}
            raise UnresolvedVariables(tuple(sorted(names)))
        return value

    def resolve_text(self, values: Values) -> str:
        """Return the text with every variable filled in, also where the whole is one variable."""
        value = self.resolve(values)
        return value if type(value) is str else as_text(value)

    def fill(self, values: Values) -> object:
        """Return the result, or MISSING when a variable has no value."""
        parts = self._parts
        if not self.names:
            return parts[0][0]
        if self.is_whole:
            value = values.find(self.names[0])
            if type(value) is str:
                if "{{" in value and _SECRET_LIKE.search(value):
                    raise SecretInData(self.names)
            elif isinstance(value, list | dict) and _SECRET_LIKE.search(as_text(value)):
                raise SecretInData(self.names)
            return value
        pieces: list[str] = []
        for text, name in parts:
            pieces.append(text)
            if name is not None:
                value = values.find(name)
                if value is MISSING:
                    return value
                pieces.append(value if type(value) is str else as_text(value))
        result = "".join(pieces)
        # Counted in the result, not looked for in each value: two columns side by side could spell out a reference.
        if "{{" in result and len(_SECRET_LIKE.findall(result)) > len(self.secrets):
            raise SecretInData(self.names)
        return result


def as_text(value: object) -> str:
    """Return how a value reads within a text: JSON, except that a text is itself and null is empty."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return _JSON.encode(value)


def _compile(text: str) -> tuple[tuple[tuple[str, str | None], ...], tuple[str, ...]]:
    parts: list[tuple[str, str | None]] = []
    secrets: list[str] = []
    literal: list[str] = []
    end = 0
    while (begin := text.find("{{", end)) >= 0:
        literal.append(text[end:begin])
        close = text.find("}}", begin + 2)
        if close < 0:
            raise TemplateError("'{{' without '}}'", begin)
        inner, end = text[begin + 2 : close], close + 2
        if _SECRET_PREFIX.match(inner):
            secret = _SECRET.fullmatch(inner)
            if secret is None:
                raise TemplateError("a secret is named as {{secret:NAME}}, NAME in letters, digits, '_' and '-'", begin)
            secrets.append(secret[1])
            literal.append(f"{{{{secret:{secret[1]}}}}}")
        else:
            parts.append(("".join(literal), _name(inner, begin)))
            literal.clear()
    literal.append(text[end:])
    parts.append(("".join(literal), None))
    return tuple(parts), tuple(secrets)


def _name(inner: str, begin: int) -> str:
    name = inner.strip()
    if not name:
        raise TemplateError("'{{}}' names no variable", begin)
    if _BAD_IN_NAME.search(name):
        raise TemplateError("a variable's name holds a brace or a line break", begin)
    if len(name) > MAX_NAME:
        raise TemplateError(f"a variable's name is longer than {MAX_NAME} characters", begin)
    return name
