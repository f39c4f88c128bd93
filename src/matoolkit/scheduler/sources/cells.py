"""Databricks' cells, which travel as text, as values of the types that the result names."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from matoolkit.scheduler.sources.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def reader_of(column: Mapping[str, Any]) -> Callable[[str], Any]:
    """What makes a value of a cell of this column; one that cannot be read stays the text it is."""
    name = str(column.get("type_name") or "").upper()
    if name not in _READERS:
        name = str(column.get("type_text") or "").upper().partition("(")[0].partition("<")[0].strip()
    convert = _READERS.get(name)
    if convert is None:
        return str

    def read(cell: str) -> Any:
        try:
            return convert(cell)
        except (KeyError, ValueError, InvalidOperation, RecursionError):
            return cell

    return read


def typed(rows: Sequence[Sequence[str | None]], readers: Sequence[Callable[[str], Any]]) -> list[tuple[Any, ...]]:
    """Rows of values."""
    return [
        tuple(None if cell is None else read(cell) for read, cell in zip(readers, row, strict=True)) for row in rows
    ]


def _boolean(cell: str) -> bool:
    return {"true": True, "false": False}[cell.lower()]


def _structure(cell: str) -> Any:
    return plain(json.loads(cell))


_WHOLE: Final = dict.fromkeys(("BYTE", "TINYINT", "SHORT", "SMALLINT", "INT", "INTEGER", "LONG", "BIGINT"), int)
_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    **_WHOLE,
    "FLOAT": lambda cell: plain(float(cell)),
    "REAL": lambda cell: plain(float(cell)),
    "DOUBLE": lambda cell: plain(float(cell)),
    "DECIMAL": lambda cell: plain(Decimal(cell)),
    "NUMERIC": lambda cell: plain(Decimal(cell)),
    "BOOLEAN": _boolean,
    "DATE": date.fromisoformat,
    "TIMESTAMP": datetime.fromisoformat,
    "TIMESTAMP_NTZ": datetime.fromisoformat,
    "BINARY": lambda cell: b64decode(cell, validate=True).hex(),
    "ARRAY": _structure,
    "MAP": _structure,
    "STRUCT": _structure,
}
