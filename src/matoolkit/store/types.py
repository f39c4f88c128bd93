"""What SQLAlchemy's types lack: a moment in time that is always UTC, one of some states, and conditions as values."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, DateTime, Dialect, String, case, false, literal_column, true
from sqlalchemy.dialects.mssql import DATETIME2
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.types import TypeDecorator, TypeEngine


def storage_text(moment: datetime) -> str:
    """A moment as SQLite keeps it, and as the other databases read it from text: sorts as it counts."""
    if moment.tzinfo is None:
        raise ValueError(f"the time {moment.isoformat()} has no zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")


class UtcDateTime(TypeDecorator[datetime]):
    """A moment with the zone UTC: `timestamptz` on PostgreSQL, `DATETIME2` on Azure SQL, sortable text on SQLite."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The database's own type."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(TIMESTAMP(timezone=True))
        if dialect.name == "mssql":
            return dialect.type_descriptor(DATETIME2(6))  # type: ignore[no-untyped-call]
        return dialect.type_descriptor(DateTime())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Zones are for PostgreSQL only; a moment without one is refused, since nobody can say what it means."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"the time {value.isoformat()} has no zone")
        return value if dialect.name == "postgresql" else value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        """What comes back carries the zone UTC."""
        if value is None:
            return None
        return value.astimezone(UTC) if value.tzinfo is not None else value.replace(tzinfo=UTC)


EXACT = "Latin1_General_100_BIN2"
"""How Azure SQL is to compare text: by its letters, as the other databases do and as the code expects.

A database there mostly takes capitals and small letters for the same, and ligatures, and letters that are younger than
its rules for nothing at all.
"""


def exact(kind: String) -> String:
    """A type of text that is compared letter by letter on every database."""
    return kind.with_variant(type(kind)(kind.length, collation=EXACT), "mssql")


class State(String):
    """Text that is one of some states.

    A state that it is compared with is written into the statement: SQLite and Azure SQL use a filtered index only where
    they see that the statement implies the index's condition, and a parameter hides that.
    """

    class Comparator(String.Comparator[str]):
        """Compares with states as constants of the statement."""

        def operate(self, op: Any, *other: Any, **kwargs: Any) -> Any:
            """Write states out; leave everything else as it is."""
            return super().operate(op, *(_written_out(each) for each in other), **kwargs)

    comparator_factory = Comparator


def whether(condition: ColumnElement[bool]) -> ColumnElement[bool]:
    """A condition as a column of a result, which Azure SQL does not know."""
    return case((condition, true()), else_=false())


def _written_out(value: Any) -> Any:
    if isinstance(value, StrEnum):
        return literal_column(f"'{value}'", String())
    if isinstance(value, tuple):
        return [_written_out(each) for each in value]
    return value
