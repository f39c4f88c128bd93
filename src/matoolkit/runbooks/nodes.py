"""YAML read into nodes that know their line and column.

Built from parser events and not by PyYAML's own composer, for three reasons: it calls itself for each level of nesting,
it forgets repeated keys, and it follows anchors without an end. Here depth and size are bounded while reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import yaml

from matoolkit.runbooks.problems import Problems, shown
from matoolkit.runbooks.source import FORBIDDEN, START, Position
from matoolkit.runbooks.syntax import BARE_TEMPLATE, explain

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH: Final = 32
MAX_NODES: Final = 50_000

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVER: Final = yaml.resolver.Resolver()
_SEPARATORS: Final = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*|^\.\.\.)*", re.MULTILINE)


class Kind(Enum):
    """What YAML takes a scalar for."""

    TEXT = "text"
    NUMBER = "a number"
    BOOLEAN = "true or false"
    DATE = "a date"
    NOTHING = "nothing"
    BROKEN = "broken"
    """Already reported: whoever reads it stays silent."""


_KINDS: Final = {
    "tag:yaml.org,2002:int": Kind.NUMBER,
    "tag:yaml.org,2002:float": Kind.NUMBER,
    "tag:yaml.org,2002:bool": Kind.BOOLEAN,
    "tag:yaml.org,2002:timestamp": Kind.DATE,
    "tag:yaml.org,2002:null": Kind.NOTHING,
}
_ALLOWED_TAGS: Final = {
    yaml.ScalarEvent: {"!", "tag:yaml.org,2002:str"},
    yaml.SequenceStartEvent: {"!", "tag:yaml.org,2002:seq"},
    yaml.MappingStartEvent: {"!", "tag:yaml.org,2002:map"},
}


@dataclass(slots=True, eq=False)
class Scalar:
    """One value, as it is written; where its text stands in one line unchanged, `text_column` is where it begins."""

    line: int
    column: int
    value: str
    kind: Kind
    plain: bool = False
    text_column: int = 0
    size: int = 1
    height: int = 0


@dataclass(slots=True, eq=False)
class Sequence:
    """A list."""

    line: int
    column: int
    items: list[Node] = field(default_factory=list)
    size: int = 1
    height: int = 1


@dataclass(slots=True, eq=False)
class Mapping:
    """Keys and values in the order they are written, every key once."""

    line: int
    column: int
    flow: bool = False
    entries: dict[str, tuple[Scalar, Node]] = field(default_factory=dict)
    size: int = 1
    height: int = 1


Node = Scalar | Sequence | Mapping


class _State(Enum):
    OPEN = auto()


@dataclass(slots=True, eq=False)
class _Frame:
    """A list or mapping that is being read."""

    node: Sequence | Mapping
    anchor: str | None
    key: Node | None = None
    merges: list[Mapping] = field(default_factory=list)
    broken: bool = False


class _Refused(Exception):
    """Ends the reading; the reason is recorded already."""


def compose(text: str, problems: Problems) -> Node | None:
    """Return the one document in the text, or None with the reason recorded. An empty document is Kind.NOTHING."""
    try:
        return _Composer(text, problems).read(_events(text))
    except _Refused:
        return None
    except (yaml.YAMLError, ValueError) as error:
        explain(error, text, problems)
        return None


def _events(text: str) -> Iterator[yaml.Event]:
    loader = _LOADER(text)
    while True:
        yield loader.get_event()


def _place(event: yaml.Event) -> Position:
    mark = event.start_mark
    return Position(mark.line + 1, mark.column + 1) if mark else START


def _kind(plain: str) -> Kind:
    """Return what YAML takes text without quotes for."""
    return _KINDS.get(_RESOLVER.resolve(yaml.ScalarNode, plain, (True, False)), Kind.TEXT)  # type: ignore[no-untyped-call]


class _Composer:
    def __init__(self, text: str, problems: Problems) -> None:
        self._text = text
        self._problems = problems
        self._anchors: dict[str, Node | _State] = {}
        self._stack: list[_Frame] = []
        self._count = 0
        self._root: Node = Scalar(1, 1, "", Kind.NOTHING)

    def read(self, events: Iterator[yaml.Event]) -> Node:
        for event in events:
            match event:
                case yaml.ScalarEvent():
                    self._add(self._scalar(event), event.anchor)
                case yaml.AliasEvent():
                    self._add(self._aliased(event), None)
                case yaml.SequenceStartEvent():
                    place = _place(event)
                    self._open(Sequence(place.line, place.column), event)
                case yaml.MappingStartEvent():
                    place = _place(event)
                    self._open(Mapping(place.line, place.column, bool(event.flow_style)), event)
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._close()
                case yaml.DocumentEndEvent():
                    self._refuse_more(event)
                    break
                case yaml.StreamEndEvent():
                    break
                case _:
                    pass
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        place, end, value = _place(event), event.end_mark, event.value
        self._check_tag(event)
        plain = event.tag is None and not event.style
        node = Scalar(place.line, place.column, value, _kind(value) if plain else Kind.TEXT, plain)
        quotes = 1 if event.style else 0
        if end and end.line + 1 == place.line and end.column + 1 - place.column == len(value) + 2 * quotes:
            node.text_column = place.column + quotes
        forbidden = FORBIDDEN.search(value)
        if forbidden:
            self._problems.error(node, "", f"the character U+{ord(forbidden[0]):04X} is not allowed in a text")
            node.kind = Kind.BROKEN
        return node

    def _aliased(self, event: yaml.AliasEvent) -> Node:
        place, anchor = _place(event), event.anchor or ""
        target = self._anchors.get(anchor)
        if isinstance(target, _State):
            self._problems.error(place, "", f"the alias *{anchor} is inside what it stands for")
        elif target is None:
            hint = self._problems.nearest(anchor, self._anchors)
            self._problems.error(place, "", f"there is no anchor &{anchor} above this alias", hint)
        else:
            return target
        return Scalar(place.line, place.column, "", Kind.BROKEN)

    def _check_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag is not None and event.tag not in _ALLOWED_TAGS[type(event)]:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            self._problems.error(_place(event), "", f"the tag {shown(tag)} is not supported", "remove it")

    def _open(self, node: Sequence | Mapping, event: yaml.CollectionStartEvent) -> None:
        self._check_tag(event)
        if len(self._stack) >= MAX_DEPTH:
            self._refuse(node, f"lists and mappings are nested more than {MAX_DEPTH} deep")
        self._stack.append(_Frame(node, event.anchor))
        if event.anchor:
            self._anchors[event.anchor] = _State.OPEN

    def _close(self) -> None:
        frame = self._stack.pop()
        node: Node = frame.node
        if isinstance(node, Mapping):
            for merged in frame.merges:
                node.entries = {**merged.entries, **node.entries}
        if frame.broken:
            node = Scalar(node.line, node.column, "", Kind.BROKEN, size=node.size)
        self._add(node, frame.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = node
        self._count += 1
        if not self._stack:
            self._root = node
            return
        frame = self._stack[-1]
        parent = frame.node
        parent.size += node.size
        parent.height = max(parent.height, node.height + 1)
        if parent.size > MAX_NODES or self._count > MAX_NODES:
            self._refuse(node, f"the document holds more than {MAX_NODES:,} values, aliases counted in full")
        if len(self._stack) + node.height > MAX_DEPTH:
            self._refuse(node, f"lists and mappings are nested more than {MAX_DEPTH} deep, aliases counted in full")
        if isinstance(parent, Sequence):
            parent.items.append(node)
        elif frame.key is None:
            frame.key = node
        else:
            key, frame.key = frame.key, None
            self._entry(frame, parent, key, node)

    def _entry(self, frame: _Frame, parent: Mapping, key: Node, value: Node) -> None:
        if not isinstance(key, Scalar):
            self._not_a_key(frame, parent, key)
        elif key.plain and key.value == "<<":
            self._merge(frame, value)
        elif key.value in parent.entries:
            first = parent.entries[key.value][0]
            self._problems.error(key, "", f"the key {shown(key.value)} is given twice", f"first in line {first.line}")
        else:
            parent.entries[key.value] = (key, value)

    def _not_a_key(self, frame: _Frame, parent: Mapping, key: Sequence | Mapping) -> None:
        frame.broken = True
        if isinstance(key, Mapping) and key.flow and parent.flow and len(key.entries) == 1:
            name = next(iter(key.entries))
            self._problems.error(parent, "", BARE_TEMPLATE, f'write "{{{{{name}}}}}"')
        else:
            self._problems.error(key, "", "a key must be a text, not a list or a mapping")

    def _merge(self, frame: _Frame, value: Node) -> None:
        sources = value.items if isinstance(value, Sequence) else [value]
        for source in sources:
            if isinstance(source, Mapping):
                # Of two merged mappings the first wins: the later one goes beneath.
                frame.merges.append(source)
            elif not (isinstance(source, Scalar) and source.kind is Kind.BROKEN):
                self._problems.error(source, "", "'<<' takes a mapping, or a list of mappings")

    def _refuse_more(self, event: yaml.DocumentEndEvent) -> None:
        """Look for a second document in the text itself: asking the parser for it could take it any time."""
        lines = self._text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        end = _place(event)
        line, column = end.line - 1, end.column - 1
        rest = "\n".join([lines[line][column:] if line < len(lines) else "", *lines[line + 1 :]])
        separators = _SEPARATORS.match(rest)
        begin = separators.end() if separators else 0
        if begin < len(rest):
            skipped = rest[:begin].split("\n")
            place = Position(
                line + len(skipped),
                (column if len(skipped) == 1 else 0) + len(skipped[-1]) + 1,
            )
            if lines[place.line - 1].startswith("---") or "..." in rest[:begin].split():
                self._refuse(place, "a second document begins here", "one file holds one runbook")
            self._refuse(place, "this is not valid YAML: the document has ended before this")

    def _refuse(self, place: Position | Node, message: str, hint: str = "") -> None:
        self._problems.error(place, "", message, hint)
        raise _Refused
