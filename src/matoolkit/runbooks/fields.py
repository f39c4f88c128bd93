"""A mapping of the document read by its definition: every value checked, every complaint with its place.

What cannot be read is reported and replaced by something harmless, so that reading goes on to the next mistake.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from matoolkit.runbooks.forms import Block, Blocks, Integer, NamedBlocks, Text, Texts
from matoolkit.runbooks.nodes import Kind, Mapping, Node, Scalar, Sequence
from matoolkit.runbooks.problems import Problems, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.runbooks.forms import Parameter, Section

_T = TypeVar("_T")

_PLAIN_NAME: Final = re.compile(r"[\w-]+")
_WHOLE_NUMBER: Final = re.compile("0|[1-9][0-9]{0,8}")
_SENSITIVE: Final = re.compile("pass|secret|token|key|credential|connection", re.IGNORECASE)


class NamedText(NamedTuple):
    """An entry of a mapping whose keys the author names."""

    name: str
    text: str
    node: Scalar
    path: str


class NamedList(NamedTuple):
    """A list of mappings under a name that the author gave it."""

    name: str
    key: Scalar
    path: str
    items: list[Fields]


class Fields:
    """One mapping of the document and the section that says what may stand in it."""

    def __init__(self, node: Mapping, section: Section, path: str, problems: Problems) -> None:
        """Check the keys: that the required ones are there, and that none is unknown."""
        self.node = node
        self.path = path
        self._section = section
        self._problems = problems
        self._check_keys()

    def has(self, name: str) -> bool:
        """Tell whether the key is given a value, a wrong one included."""
        entry = self.node.entries.get(name)
        return entry is not None and not (isinstance(entry[1], Scalar) and entry[1].kind is Kind.NOTHING)

    def allows(self, name: str) -> bool:
        """Tell whether the section has such a key."""
        return name in self._section.by_name

    def place(self, name: str) -> Node:
        """Return where the value of a key stands; for an absent key, where the mapping begins."""
        entry = self.node.entries.get(name)
        return entry[1] if entry else self.node

    def path_of(self, name: str) -> str:
        """Return the path of a key, or of the mapping itself for an empty name."""
        return _joined(self.path, name) if name else self.path

    def error(self, name: str, message: str, hint: str = "") -> None:
        """Report an error at the value of a key."""
        self._problems.error(self.place(name), self.path_of(name), message, hint)

    def warning(self, name: str, message: str, hint: str = "") -> None:
        """Report a warning at the value of a key."""
        self._problems.warning(self.place(name), self.path_of(name), message, hint)

    def text(self, name: str) -> str:
        """Return the text of a key, or an empty one when it is absent or was reported."""
        form = self._form(name, Text)
        node = self._value(name)
        return "" if node is None else self._checked(node, form, self.path_of(name))

    def text_or_none(self, name: str) -> str | None:
        """Return the text of an optional key."""
        return self.text(name) or None

    def converted(self, name: str, convert: Callable[[str], _T]) -> _T | None:
        """Return what the text of a key stands for; a ValueError is reported in its own words."""
        text = self.text(name)
        if not text:
            return None
        try:
            return convert(text)
        except ValueError as error:
            self.error(name, str(error))
            return None

    def integer(self, name: str) -> int | None:
        """Return the number of a key."""
        form = self._form(name, Integer)
        node = self._value(name)
        if node is None or _is_broken(node):
            return None
        if isinstance(node, Scalar) and _WHOLE_NUMBER.fullmatch(node.value):
            if node.kind is not Kind.NUMBER:
                self.error(name, "must be a number", f"write it without quotes: {node.value}")
                return None
            if form.minimum <= int(node.value) <= form.maximum:
                return int(node.value)
        self.error(name, f"must be a whole number from {form.minimum} to {form.maximum}")
        return None

    def block(self, name: str) -> Fields | None:
        """Return the mapping under a key."""
        form = self._form(name, Block)
        node = self._value(name)
        if node is None:
            return None
        return self._fields(node, form.section, self.path_of(name))

    def blocks(self, name: str) -> list[Fields]:
        """Return the mappings of the list under a key."""
        node = self._value(name)
        return [] if node is None else self._list(node, self._form(name, Blocks), self.path_of(name))

    def texts(self, name: str) -> list[NamedText]:
        """Return the entries of the mapping under a key, those with unusable names left out."""
        form = self._form(name, Texts)
        return [
            NamedText(key.value, self._checked(value, form.values, path), _as_place(value), path)
            for key, value, path in self._named(name, form.names)
        ]

    def named_blocks(self, name: str) -> list[NamedList]:
        """Return the lists of the mapping under a key, those with unusable names left out."""
        form = self._form(name, NamedBlocks)
        return [
            NamedList(key.value, key, path, self._list(value, form.blocks, path))
            for key, value, path in self._named(name, form.names)
        ]

    def _check_keys(self) -> None:
        known = self._section.by_name
        refused = dict(self._section.refused)
        entries = self.node.entries
        folded = {key.casefold(): key for key in known}
        for key, _ in entries.values():
            name = key.value
            path = _joined(self.path, name)
            meant = folded.get(name.casefold())
            if name in known:
                continue
            if name in refused:
                self._problems.error(key, path, refused[name])
            elif meant and meant in entries:
                first = entries[meant][0].line
                self._problems.error(key, path, f"{shown(name)} repeats '{meant}'", f"that is in line {first}")
            else:
                hint = self._problems.nearest(name, known)
                self._problems.warning(key, path, f"{shown(name)} is not a key here", hint, unknown_key=True)
        for key_definition in self._section.keys:
            if key_definition.required and key_definition.name not in entries:
                self._problems.error(self.node, self.path, f"'{key_definition.name}' is missing")

    def _form(self, name: str, kind: type[_T]) -> _T:
        form = self._section.by_name[name].form
        if not isinstance(form, kind):
            raise TypeError(f"{self._section.name}.{name} is defined as {type(form).__name__}")
        return form

    def _value(self, name: str) -> Node | None:
        """Return the node of a key; an optional key without a value is as good as absent."""
        entry = self.node.entries.get(name)
        if entry is None:
            return None
        if isinstance(entry[1], Scalar) and entry[1].kind is Kind.NOTHING:
            if self._section.by_name[name].required:
                self.error(name, "has no value")
            return None
        return entry[1]

    def _fields(self, node: Node, section: Section, path: str) -> Fields | None:
        if isinstance(node, Mapping):
            return Fields(node, section, path, self._problems)
        if not _is_broken(node):
            keys = ", ".join(key.name for key in section.keys[:3])
            self._problems.error(node, path, f"must be a mapping with keys like {keys}")
        return None

    def _list(self, node: Node, form: Blocks, path: str) -> list[Fields]:
        if isinstance(node, Sequence):
            if len(node.items) < form.minimum:
                self._problems.error(node, path, f"needs at least one {form.section.name}")
            found = (self._fields(item, form.section, f"{path}[{index}]") for index, item in enumerate(node.items))
            return [fields for fields in found if fields is not None]
        if not _is_broken(node):
            hint = "begin each with '- '"
            self._problems.error(node, path, f"must be a list: each item is one {form.section.name}", hint)
        return []

    def _named(self, name: str, names: Text) -> Iterator[tuple[Scalar, Node, str]]:
        node = self._value(name)
        if node is None or _is_broken(node):
            return
        if not isinstance(node, Mapping):
            self.error(name, "must be a mapping: each line a name, a colon and its value")
            return
        first: dict[str, Scalar] = {}
        for key, value in node.entries.values():
            path = _joined(self.path_of(name), key.value)
            if not self._checked(key, names, path):
                continue
            other = first.setdefault(key.value.casefold(), key)
            if other is key:
                yield key, value, path
            else:
                message = f"{shown(key.value)} repeats {shown(other.value)}: case makes no difference"
                self._problems.error(key, path, message, f"that is in line {other.line}")

    def _checked(self, node: Node, form: Text | Parameter, path: str) -> str:
        """Return the text of a node, or report what is wrong with it and return an empty one."""
        if _is_broken(node):
            return ""
        complaint = _complaint(node, form, path)
        if complaint:
            self._problems.error(node, path, *complaint)
        elif isinstance(node, Scalar) and (not isinstance(form, Text) or form.accepts(node.value)):
            return node.value
        elif isinstance(node, Scalar) and isinstance(form, Text):
            self._problems.error(node, path, *self._unaccepted(node.value, form))
        return ""

    def _unaccepted(self, value: str, form: Text) -> tuple[str, str]:
        if not value.strip():
            return "must not be empty", ""
        if len(value) > form.max_length:
            return f"is longer than {form.max_length:,} characters", ""
        if form.choices:
            choices = ", ".join(form.choices)
            # An enum's member is a text; its plain value is what belongs in a message.
            return f"must be one of {choices}", self._problems.nearest(value, [str(choice) for choice in form.choices])
        return f"must be {form.expected}", ""


def _complaint(node: Node, form: Text | Parameter, path: str) -> tuple[str, str] | None:
    """Tell why a node is not a text at all, or is longer than any parameter may be."""
    if not isinstance(node, Scalar):
        return f"must be a text, not a {'list' if isinstance(node, Sequence) else 'mapping'}", ""
    if node.kind is Kind.NOTHING:
        return "has no value", 'write "" for an empty text' if not isinstance(form, Text) else ""
    if node.kind is not Kind.TEXT:
        if isinstance(form, Text) and not form.accepts(node.value):
            return f"must be {form.expected}", f"this is {node.kind.value}"
        # Never repeat what may be a password that somebody wrote into a runbook.
        value = "…" if _SENSITIVE.search(path.rpartition(".")[2]) else node.value[:64]
        return f"must be a text, and this is {node.kind.value}", f'write it in quotes: "{value}"'
    if not isinstance(form, Text) and len(node.value) > form.max_length:
        return f"is longer than {form.max_length:,} characters", ""
    return None


def _as_place(node: Node) -> Scalar:
    return node if isinstance(node, Scalar) else Scalar(node.line, node.column, "", Kind.BROKEN)


def _is_broken(node: Node) -> bool:
    return isinstance(node, Scalar) and node.kind is Kind.BROKEN


def _joined(path: str, name: str) -> str:
    step = name if _PLAIN_NAME.fullmatch(name) else f'"{name[:64]}"'
    return f"{path}.{step}" if path else step
