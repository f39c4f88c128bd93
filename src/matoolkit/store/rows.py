"""Rows handed to a statement as one parameter: what lets a set of any size be one statement on every database.

A `Rows` stands in a `FROM` clause like a table. SQLite reads it with `json_each`, PostgreSQL with `unnest`, Azure SQL
with `OPENJSON`; `bind` makes the parameters that go with it. On PostgreSQL these are binary arrays (`store/arrays.py`):
measured there, text arrays cost seven times and JSON documents one and a half times as much.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, BindParameter, Boolean, Integer, String, Text, bindparam
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from matoolkit.store.types import EXACT, UtcDateTime, storage_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Column
    from sqlalchemy.sql.compiler import SQLCompiler
    from sqlalchemy.types import TypeEngine

# A BigInteger is an Integer too, so it comes first.
_POSTGRESQL_TYPES: dict[type[TypeEngine[Any]], str] = {
    BigInteger: "bigint",
    Integer: "integer",
    String: "text",
    Boolean: "boolean",
    UtcDateTime: "timestamptz",
}
_MSSQL_TYPES: dict[type[TypeEngine[Any]], str] = {
    BigInteger: "BIGINT",
    Integer: "INT",
    String: "NVARCHAR(MAX)",
    Boolean: "BIT",
    UtcDateTime: "DATETIME2(6)",
}


def _type_name(names: dict[type[TypeEngine[Any]], str], column: Column[Any]) -> str:
    return next(name for kind, name in names.items() if isinstance(column.type, kind))


def _array_parameter(parameter: str, column: Column[Any]) -> str:
    """The type is part of the name, because the name is part of what SQLAlchemy caches statements by."""
    return f"{parameter}__{column.name}__{_type_name(_POSTGRESQL_TYPES, column)}"


class _RowsFunction(FunctionElement[Any]):
    """The database function that turns the parameter into rows."""

    inherit_cache = True
    name = "given_rows"

    def __init__(self, parameter: str, columns: Sequence[Column[Any]]) -> None:
        self.columns_given = tuple(columns)
        self.document = bindparam(parameter, type_=Text)
        self.arrays: tuple[BindParameter[Any], ...] = tuple(
            bindparam(_array_parameter(parameter, column)) for column in columns
        )
        super().__init__(self.document, *self.arrays)


@compiles(_RowsFunction, "sqlite")
def _sqlite(element: _RowsFunction, compiler: SQLCompiler, **kw: Any) -> str:
    picked = ", ".join(f"value ->> {index} AS {column.name}" for index, column in enumerate(element.columns_given))
    return f"(SELECT {picked} FROM json_each({compiler.process(element.document, **kw)}))"


@compiles(_RowsFunction, "postgresql")
def _postgresql(element: _RowsFunction, compiler: SQLCompiler, **kw: Any) -> str:
    arrays = ", ".join(
        f"CAST({compiler.process(array, **kw)} AS {_type_name(_POSTGRESQL_TYPES, column)}[])"
        for array, column in zip(element.arrays, element.columns_given, strict=True)
    )
    names = ", ".join(column.name for column in element.columns_given)
    return f"(SELECT * FROM unnest({arrays}) AS given({names}))"


@compiles(_RowsFunction, "mssql")
def _mssql(element: _RowsFunction, compiler: SQLCompiler, **kw: Any) -> str:
    picked = ", ".join(
        f"{column.name} {_mssql_type(column)} '$[{index}]'" for index, column in enumerate(element.columns_given)
    )
    # Text comes out of a document in the database's collation, and two collations cannot be compared.
    named = ", ".join(
        f"{column.name} COLLATE {EXACT} AS {column.name}" if isinstance(column.type, String) else column.name
        for column in element.columns_given
    )
    return f"(SELECT {named} FROM OPENJSON({compiler.process(element.document, **kw)}) WITH ({picked}))"


def _mssql_type(column: Column[Any]) -> str:
    """Text by which rows are looked up has the length that their column has, or no index is of use.

    One letter more, so that what is too long is refused and never cut.
    """
    length = column.type.length if isinstance(column.type, String) else None
    return _type_name(_MSSQL_TYPES, column) if length is None else f"NVARCHAR({length + 1})"


class Rows:
    """A parameter made of rows, and the columns by which statements speak of them."""

    def __init__(self, *columns: Column[Any], name: str = "given") -> None:
        self.name = name
        self._columns = columns
        self.table = _RowsFunction(name, columns).table_valued(*columns).alias(name)
        self.c = self.table.c

    @cached_property
    def _arrays(self) -> list[tuple[str, type[list[Any]]]]:
        """PostgreSQL's parameters, and the kind of array each is; imported late, for the sake of who never needs it."""
        from matoolkit.store import arrays

        kinds: dict[str, type[list[Any]]] = {
            "bigint": arrays.BigIntArray,
            "integer": arrays.IntegerArray,
            "text": arrays.TextArray,
            "boolean": arrays.BooleanArray,
            "timestamptz": arrays.TimestampArray,
        }
        return [
            (_array_parameter(self.name, column), kinds[_type_name(_POSTGRESQL_TYPES, column)])
            for column in self._columns
        ]

    def bind(self, dialect: str, rows: Iterable[Sequence[Any]]) -> dict[str, Any]:
        """The parameters that carry `rows`, in the order of the columns, to the database of that dialect."""
        if dialect == "postgresql":
            given = list(rows)
            arrays = self._arrays
            return {parameter: array([row[index] for row in given]) for index, (parameter, array) in enumerate(arrays)}
        times = [index for index, column in enumerate(self._columns) if isinstance(column.type, UtcDateTime)]
        if times:
            rows = [
                [
                    storage_text(value) if index in times and value is not None else value
                    for index, value in enumerate(row)
                ]
                for row in rows
            ]
        return {self.name: msgspec.json.encode(rows if isinstance(rows, list) else list(rows)).decode()}
