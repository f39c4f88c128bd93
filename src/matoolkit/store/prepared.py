"""Statements made ready once and then run straight on the driver.

SQLAlchemy compiles them and knows how their values travel; what it does besides for every execution costs several
times what the database does, and everything here is small and often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Boolean, exc
from sqlalchemy.types import NullType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from sqlalchemy import Connection, Dialect, Executable

    from matoolkit.store.azure_sql.parameters import Sizes

Row = tuple[Any, ...]


class Answer:
    """What a statement gave: its rows, or how many rows it changed."""

    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: list[Row], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)

    def all(self) -> list[Row]:
        """Every row."""
        return self._rows

    def first(self) -> Row | None:
        """The first row, if there is any."""
        return self._rows[0] if self._rows else None

    def one(self) -> Row:
        """The only row."""
        (row,) = self._rows
        return row

    def scalar(self) -> Any:
        """The first value of the first row, or nothing."""
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        """The first value of the only row."""
        return self.one()[0]

    def scalars(self) -> list[Any]:
        """The first value of every row."""
        return [row[0] for row in self._rows]


class Prepared:
    """One statement, for one kind of database."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        compiled, self._sql, self._order, own = _compiled(statement, dialect)
        self._dialect = dialect
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect) for name, bind in compiled.binds.items()
        }
        if dialect.name == "mssql":
            # Microsoft's driver takes truth as it is, and not the numbers that stand for it.
            processors |= {name: None for name, bind in compiled.binds.items() if isinstance(bind.type, Boolean)}
        self._processors: dict[str, Callable[[Any], Any]] = {
            name: processor for name, processor in processors.items() if processor is not None
        }
        # Values that stand in the statement itself are made fit once; those to be given replace what is here.
        self._given = {**self._processed(compiled.construct_params(_check=False)), **own}
        self._sizes = _sizes(compiled, self._order) if dialect.name == "mssql" and self._order else None
        self._names = frozenset(name for name, bind in compiled.binds.items() if bind.required)
        self._columns = _result_processors(compiled, dialect)

    def run(self, connection: Connection, parameters: Mapping[str, Any]) -> Answer:
        """Run it with its parameters."""
        if not self._names <= parameters.keys():
            missing = ", ".join(sorted(self._names - parameters.keys()))
            raise TypeError(f"the statement needs {missing} as well")
        values = {**self._given, **self._processed(parameters)}
        driver: Any = connection.connection
        cursor = driver.cursor()
        try:
            if self._order is None:
                cursor.execute(self._sql, values)
            else:
                ordered = [values[name] for name in self._order]
                if self._sizes is not None:
                    cursor.setinputsizes(self._sizes.of(ordered))
                cursor.execute(self._sql, ordered)
            rows = cursor.fetchall() if cursor.description else []
            if self._sizes is not None:
                rows = [tuple(row) for row in rows]
            changed = cursor.rowcount
        except self._dialect.loaded_dbapi.Error as error:
            raise self._wrapped(connection, cursor, error) from error
        finally:
            cursor.close()
        return Answer(self._columns(rows) if rows and self._columns else rows, changed)

    def _processed(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        processors = self._processors
        return {name: processors[name](value) if name in processors else value for name, value in parameters.items()}

    def _wrapped(self, connection: Connection, cursor: Any, error: Exception) -> Exception:
        """The driver's error as SQLAlchemy would have told it; a connection that is gone is not used again."""
        gone = self._dialect.is_disconnect(error, connection.connection.dbapi_connection, cursor)  # type: ignore[arg-type]
        if gone:
            # A restart ends all connections there are: without this, each would be tried, and fail, on its own.
            connection.engine.pool._invalidate(connection.connection, error)  # noqa: SLF001 - as SQLAlchemy does
            connection.invalidate(error)
        return exc.DBAPIError.instance(
            statement=self._sql,
            params=None,
            orig=error,
            dbapi_base_err=self._dialect.loaded_dbapi.Error,
            hide_parameters=True,
            connection_invalidated=gone,
            dialect=self._dialect,
        )


def _compiled(statement: Any, dialect: Dialect) -> tuple[Any, str, tuple[str, ...] | None, dict[str, Any]]:
    """The statement, its text, the order of its parameters, and values of those that it got in being written out."""
    compiled = statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": dialect.name != "mssql"})
    sql, order, own = str(compiled), compiled.positiontup, {}
    if dialect.name == "mssql" and (compiled.literal_execute_params or compiled.post_compile_params):
        # `TOP 1` is something that is written out as well; SQLAlchemy wants all the values for that.
        needed = {name: None for name, bind in compiled.binds.items() if bind.required}
        written = compiled.construct_expanded_state(needed)
        sql, order = written.statement, written.positiontup
        own = {name: value for name, value in written.parameters.items() if name not in compiled.binds}
    return compiled, sql, None if order is None else tuple(order), own


def _sizes(compiled: Any, order: tuple[str, ...]) -> Sizes:
    """What Microsoft's driver is to be told of the parameters; imported late, for the sake of who never needs it."""
    from matoolkit.store.azure_sql.parameters import Sizes

    unknown = NullType()
    return Sizes([compiled.binds[name].type if name in compiled.binds else unknown for name in order])


def _result_processors(compiled: Any, dialect: Dialect) -> Callable[[list[Row]], list[Row]] | None:
    """What turns the driver's values into ours, for the columns where there is anything to turn."""
    columns = compiled._result_columns  # noqa: SLF001 - the only place that has the types of what comes back
    found = [
        (index, processor)
        for index, column in enumerate(columns)
        if (processor := column.type.dialect_impl(dialect).result_processor(dialect, None)) is not None
        # SQLite's 0 and 1 are as good as booleans to everybody who asks whether they are true.
        and not isinstance(column.type, Boolean)
    ]
    if not found:
        return None

    def process(rows: list[Row]) -> list[Row]:
        return [_processed(row, found) for row in rows]

    return process


def _processed(row: Row, found: list[tuple[int, Callable[[Any], Any]]]) -> Row:
    values: list[Any] | None = None
    for index, processor in found:
        if row[index] is not None:
            if values is None:
                values = list(row)
            values[index] = processor(row[index])
    return row if values is None else tuple(values)
