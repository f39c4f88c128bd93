"""From a row, of a query or of an uploaded list, to what is kept of a member: the key, and the data as JSON.

Values keep their kind where JSON has it: text, numbers, booleans, null. Everything else is text that says the same,
and a multi-valued column becomes a list. The same row gives the same text every time, so that texts can be compared.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from operator import itemgetter
from types import NoneType
from typing import TYPE_CHECKING, Any, Final
from unicodedata import category
from uuid import UUID

import msgspec

from matoolkit.batches.errors import UnreadableRow, UnusableColumns
from matoolkit.runbooks.model import MultiValuedFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from matoolkit.runbooks.model import MultiValuedColumn

MAX_KEY: Final = 512
"""How long a key may be, in the letters that Azure SQL counts; as it is written and as it is compared."""

_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE: Final = msgspec.json.Decoder().decode
# Of these kinds the encoder makes what we want, and quickly; for the others there is `_plain`.
_AS_THEY_ARE: Final = frozenset({str, int, float, bool, NoneType, datetime, date, time, UUID})
_NO_LETTERS: Final = ("Cc", "Cs")
_DEEPEST: Final = 50
_LONGEST_NUMBER: Final = 50
_DELIMITERS: Final = {MultiValuedFormat.SEMICOLON_DELIMITED: ";", MultiValuedFormat.COMMA_DELIMITED: ","}


class MemberData:
    """Turns the rows of one set of columns into members' data: made once, then called for every row."""

    __slots__ = ("_columns", "_multi_valued")

    def __init__(self, columns: Sequence[str], multi_valued: Collection[MultiValuedColumn] = ()) -> None:
        """Take the columns in their order; UnusableColumns when two cannot be told apart, or one is not there."""
        check_columns(columns)
        self._columns = tuple(columns)
        self._multi_valued = tuple(
            (place_of(columns, each.name), partial(_several, each.name, each.format)) for each in multi_valued
        )

    def encode(self, row: Sequence[Any]) -> str:
        """Return the data of a row as JSON; UnreadableRow when a cell is not what its column promises."""
        values: Sequence[Any] = row
        if self._multi_valued:
            values = list(row)
            for place, read in self._multi_valued:
                values[place] = read(values[place])
        if _AS_THEY_ARE.issuperset(map(type, row)):
            try:
                return _ENCODE(dict(zip(self._columns, values, strict=True))).decode()
            except UnicodeEncodeError:
                pass  # Half a letter, as broken encodings leave behind: written otherwise below.
            except ValueError:
                raise UnreadableRow("a number has too many digits") from None
        return _ENCODE({name: _plain(value) for name, value in zip(self._columns, values, strict=True)}).decode()


def check_columns(columns: Sequence[str]) -> None:
    """Refuse columns whose names differ by nothing, or by case alone: nobody could say which one is meant."""
    counts = Counter(name.casefold() for name in columns)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        named = ", ".join(f"{name or '(no name)'} ({counts[name]} times)" for name in twice)
        raise UnusableColumns(f"several columns have the same name: {named}; give each a name of its own with AS")


def place_of(columns: Sequence[str], name: str) -> int:
    """Return where a column stands: the one of just that name, else the one that differs by case alone."""
    folded = name.casefold()
    for place, column in enumerate(columns):
        if column.casefold() == folded:
            return place
    there = ", ".join(columns)
    raise UnusableColumns(f"there is no column {name}; there are: {there[:1000]}")


def key_reader(columns: Sequence[str], primary_key: str) -> Callable[[Sequence[Any]], str]:
    """Return what takes a member's key from a row; it raises UnreadableRow when the cell cannot be a key."""
    pick = itemgetter(place_of(columns, primary_key))
    return lambda row: member_key(pick(row))


def member_key(value: Any) -> str:
    """Return a key as text, without blanks around it; UnreadableRow when it cannot be one."""
    key = value.strip() if type(value) is str else _key_text(value)
    if not key:
        raise UnreadableRow("the key is empty")
    if key.isascii():
        if len(key) > MAX_KEY:
            raise UnreadableRow(f"the key is longer than {MAX_KEY} characters")
    elif max(map(_length, (key, key.casefold()))) > MAX_KEY:
        raise UnreadableRow(f"the key is longer than {MAX_KEY} characters")
    if not key.isprintable() and any(category(letter) in _NO_LETTERS for letter in key):
        raise UnreadableRow("the key holds a control character")
    return key


def _key_text(value: Any) -> str:
    """A key that is no text: numbers without the fraction that spreadsheets give them, times, identifiers."""
    if value is None:
        return ""
    if isinstance(value, float | Decimal):
        exact = Decimal(value)
        if not exact.is_finite():
            raise UnreadableRow("the key is no number that can be written")
        if exact.adjusted() < _LONGEST_NUMBER and exact == exact.to_integral_value():
            return str(int(exact))
    if isinstance(value, int | float | Decimal | date | UUID) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value.strip()
    raise UnreadableRow(f"the key is no text and no number but {type(value).__name__}")


def _length(text: str) -> int:
    """How many letters Azure SQL counts."""
    return len(text.encode("utf-16-le", "replace")) // 2


def _plain(value: Any) -> Any:
    """A value as JSON can hold it, and as every reader of JSON reads it again."""
    match value:
        case str():
            return value if value.isascii() else value.encode("utf-8", "replace").decode()
        case bool() | int() | float() | date() | time() | timedelta() | UUID() | None:
            return value
        case Decimal():
            return _decimal(value)
        case bytes() | bytearray() | memoryview():
            return bytes(value)
        case list() | tuple():
            return [_plain(each) for each in value]
        case set() | frozenset():
            return sorted((_plain(each) for each in value), key=str)
        case dict():
            return {_plain(str(key)): _plain(each) for key, each in value.items()}
        case _:
            return _plain(str(value))


def _decimal(value: Decimal) -> str | None:
    """Text, since a reader would make a rounded number of it; without exponent unless that would be endless."""
    if not value.is_finite():
        return None
    return format(value, "f") if abs(value.adjusted()) < _LONGEST_NUMBER else str(value)


def _several(column: str, packed: MultiValuedFormat, value: Any) -> list[Any]:
    """The values of a multi-valued cell; a source that has lists of its own needs no format."""
    if value is None:
        return []
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    delimiter = _DELIMITERS.get(packed)
    if delimiter is not None:
        parts = (part.strip() for part in (value if isinstance(value, str) else str(_plain(value))).split(delimiter))
        return [part for part in parts if part]
    if not isinstance(value, str):
        raise UnreadableRow(f"column {column} holds no JSON array but {type(value).__name__}")
    if not value.strip():
        return []
    try:
        several = _DECODE(value)
    except (ValueError, RecursionError):
        raise UnreadableRow(f"column {column} holds no JSON array") from None
    if several is None:
        return []
    if not isinstance(several, list) or _depth(several) > _DEEPEST:
        raise UnreadableRow(f"column {column} holds JSON that is no array")
    return several


def _depth(value: Any) -> int:
    """How deep lists and objects go, as far as that matters."""
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
    return depth
