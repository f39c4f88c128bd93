"""Types of parameters, told to Microsoft's driver instead of left to it to guess.

It would declare each by its value: a document by its length, so that a statement had as many plans as there are
lengths, and a value that is missing by asking the server, which cannot say what `? IS NULL` stands for.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, Boolean, Integer, String, Text

from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.types import TypeEngine

Size = tuple[int, int, int]
"""The type by ODBC's number, how long it is, and how many digits of a second it has."""

_BIGINT: Final[Size] = (-5, 0, 0)
_INTEGER: Final[Size] = (4, 0, 0)
_BIT: Final[Size] = (-7, 0, 0)
_MOMENT: Final[Size] = (93, 26, 6)
_TEXT: Final[Size] = (-9, 4000, 0)
_LONG_TEXT: Final[Size] = (-9, 0, 0)
# A BigInteger is an Integer too, so it comes first.
_BY_TYPE: Final[tuple[tuple[type[TypeEngine[Any]], Size], ...]] = (
    (BigInteger, _BIGINT),
    (Integer, _INTEGER),
    (Boolean, _BIT),
    (UtcDateTime, _MOMENT),
)
_LONGEST = 4000


class Sizes:
    """What the parameters of one statement are, in their order."""

    def __init__(self, types: Sequence[TypeEngine[Any]]) -> None:
        self._known = [_of_type(each) for each in types]

    def of(self, values: Sequence[Any]) -> list[Size]:
        """What they are with these values, which tell where the statement does not."""
        return [known or _of_value(value) for known, value in zip(self._known, values, strict=True)]


def _of_type(kind: TypeEngine[Any]) -> Size | None:
    if isinstance(kind, Text):
        return _LONG_TEXT
    if isinstance(kind, String):
        # By a text of any length no index can be used, so without one it depends on the value.
        return _TEXT if kind.length is not None and kind.length <= _LONGEST else None
    return next((size for each, size in _BY_TYPE if isinstance(kind, each)), None)


def _of_value(value: Any) -> Size:
    match value:
        case bool():
            return _BIT
        case int():
            return _BIGINT
        case datetime():
            return _MOMENT
        case _:
            return _LONG_TEXT if isinstance(value, str) and len(value) > _LONGEST // 2 else _TEXT
