"""The values of a row as everybody else may rely on them.

Text, whole numbers, decimals, booleans, nothing, dates, times and lists of them pass as they are; a time keeps its
zone. The rest becomes text as people write it: identifiers in lower case, bytes in hexadecimal, intervals, addresses.
Numbers that are none (`nan`, `inf`) become text too, since JSON cannot say them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_AS_THEY_ARE: Final = frozenset({str, int, bool, type(None), datetime, date, time})


def plain_rows(rows: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    """Rows of what a driver gives, as tuples of plain values."""
    taken = [tuple(row) for row in rows]
    # Most results hold nothing special, and to see that costs a tenth of looking at each value.
    if _AS_THEY_ARE.issuperset(map(type, chain.from_iterable(taken))):
        return taken
    return [tuple(map(plain, row)) for row in taken]


def plain(value: Any) -> Any:
    """One value."""
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if kind is float:
        return value if isfinite(value) else str(value)
    if kind is Decimal:
        return value if value.is_finite() else str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)
