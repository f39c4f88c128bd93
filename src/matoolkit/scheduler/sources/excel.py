"""A sheet of an Excel file as a table that SQL can ask."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from python_calamine import CalamineError, load_workbook

from matoolkit.scheduler.sources.errors import QueryRefused
from matoolkit.scheduler.sources.quoting import column_names, identifier
from matoolkit.scheduler.sources.values import plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import duckdb

    from matoolkit.scheduler.sources.watch import Watch

_ROWS_AT_ONCE: Final = 2_000
_SQL_TYPES: Final[dict[type, str]] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    datetime: "TIMESTAMP",
    date: "DATE",
    time: "TIME",
    str: "VARCHAR",
}
_LARGEST_WHOLE: Final = 2.0**53


def offer_sheet(connection: duckdb.DuckDBPyConnection, name: str, file: Path, sheet: str | None, watch: Watch) -> None:
    """Fill a table of that name with a sheet, the first one when none is named; its first row names the columns.

    A column whose cells are all of one kind has that kind; one of several kinds is text, as is one without cells.
    """
    try:
        with load_workbook(file) as book:
            names = book.sheet_names
            chosen = next((each for each in names if each.casefold() == sheet.casefold()), None) if sheet else names[0]
            if chosen is None:
                raise QueryRefused(f"{watch.place}: {file.name} has no sheet {sheet}: it has {', '.join(names)}")
            found = book.get_sheet_by_name(chosen)
            header = next(iter(found.iter_rows()), [])
            columns = column_names(str(_whole(cell)) for cell in header)
            kinds = [_Kind() for _ in columns]
            for row in _data(found.iter_rows()):
                watch.remaining()
                for kind, cell in zip(kinds, row, strict=False):
                    kind.meet(cell)
            if not columns:
                raise QueryRefused(f"{watch.place}: {name} is empty: its first row has to name the columns")
            statement = _table(connection, name, columns, kinds)
            for batch in _filled(_data(found.iter_rows()), kinds):
                watch.remaining()
                connection.execute(statement, batch)
    except CalamineError as error:
        raise QueryRefused(f"{watch.place}: {file.name} cannot be read as a workbook") from error


class _Kind:
    """What the cells of one column have in common."""

    def __init__(self) -> None:
        self._met: set[type] = set()

    def meet(self, cell: Any) -> None:
        if cell not in ("", None):
            self._met.add(type(_whole(cell)))

    @property
    def type(self) -> type:
        if self._met <= {int, float} and self._met:
            return float if float in self._met else int
        if self._met <= {date, datetime} and self._met:
            return datetime if datetime in self._met else date
        kind = next(iter(self._met)) if len(self._met) == 1 else str
        return kind if kind in _SQL_TYPES else str

    def value(self, cell: Any) -> Any:
        if cell in ("", None) and not isinstance(cell, bool | int | float):
            return None
        if self.type is not str:
            return _whole(cell)
        return cell if isinstance(cell, str) else _written(_whole(cell))


def _whole(cell: Any) -> Any:
    """Excel knows one kind of number; those without a fraction are meant as whole ones."""
    return int(cell) if type(cell) is float and cell.is_integer() and abs(cell) <= _LARGEST_WHOLE else cell


def _written(cell: Any) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    return str(cell) if isinstance(cell, timedelta) else str(plain(cell))


def _data(rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """The rows below the first, without those that are empty."""
    return (row for row in islice(rows, 1, None) if any(cell not in ("", None) for cell in row))


def _table(connection: duckdb.DuckDBPyConnection, name: str, columns: list[str], kinds: list[_Kind]) -> str:
    """Make the table, and the statement that takes a list of values for each of its columns."""
    types = [_SQL_TYPES[kind.type] for kind in kinds]
    declared = ", ".join(f"{identifier(each)} {kind}" for each, kind in zip(columns, types, strict=True))
    connection.execute(f"CREATE OR REPLACE TABLE {identifier(name)} ({declared})")
    unnested = ", ".join(f"unnest(?::{kind}[])" for kind in types)
    return f"INSERT INTO {identifier(name)} SELECT {unnested}"


def _filled(rows: Iterator[list[Any]], kinds: list[_Kind]) -> Iterator[list[list[Any]]]:
    """Batches of rows, a list for each column; rows that are too short are made longer."""
    while batch := list(islice(rows, _ROWS_AT_ONCE)):
        yield [
            [kind.value(row[index] if index < len(row) else None) for row in batch] for index, kind in enumerate(kinds)
        ]
