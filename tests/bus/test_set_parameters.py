"""Rows as parameters: what arrives is what was given, and statements with them are compiled once."""

from __future__ import annotations

import gc
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import BigInteger, Boolean, Column, Integer, String, Text, event, select

from matoolkit.store import arrays
from matoolkit.store.arrays import prepare_postgresql
from matoolkit.store.database import open_database
from matoolkit.store.rows import Rows
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database


def rows_of_every_type() -> Rows:
    return Rows(
        Column("number", BigInteger),
        Column("small", Integer),
        Column("words", String(20)),
        Column("prose", Text),
        Column("flag", Boolean),
        Column("at", UtcDateTime),
    )


AT = datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
VALUES: list[tuple[Any, ...]] = [
    (2**62, -(2**31), "", "Zoë 😀 \" ' \\ {} , NULL", True, AT),
    (-1, 7, "null", "\n\t", False, AT + timedelta(days=10_000)),
    (None, None, None, None, None, None),
]


@pytest.fixture(params=["sqlite", "postgresql", "postgresql, not prepared"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[Database]:
    on_sqlite = request.param == "sqlite"
    database = open_database(f"sqlite:///{tmp_path / 'x'}" if on_sqlite else request.getfixturevalue("postgres_url"))
    if request.param == "postgresql":
        prepare_postgresql(database.engine)
        prepare_postgresql(database.engine)
    elif not on_sqlite and event.contains(database.engine, "connect", arrays._teach):
        event.remove(database.engine, "connect", arrays._teach)
    yield database
    database.close()


@pytest.mark.parametrize("values", [VALUES, VALUES[:2], VALUES[2:], []], ids=["mixed", "full", "nulls", "none"])
def test_values_arrive_as_they_were_given(store: Database, values: list[tuple[Any, ...]]) -> None:
    given = rows_of_every_type()
    with store.transaction() as tx:
        arrived = tx.with_rows(select(*given.c), given, values).all()
    assert [tuple(row) for row in arrived] == values


def test_times_of_other_zones_are_the_same_moments(store: Database) -> None:
    given = Rows(Column("at", UtcDateTime))
    with store.transaction() as tx:
        local = AT.astimezone(timezone(timedelta(hours=5, minutes=30)))
        assert tx.with_rows(select(given.c.at), given, [(local,)]).scalar_one() == AT


def test_rows_that_differ_only_in_their_types_are_not_taken_for_each_other(store: Database) -> None:
    number, words = Rows(Column("value", BigInteger)), Rows(Column("value", String))
    with store.transaction() as tx:
        for _ in range(2):
            assert tx.with_rows(select(number.c.value), number, [(7,)]).scalar_one() == 7
            assert tx.with_rows(select(words.c.value), words, [("07",)]).scalar_one() == "07"


def test_statements_are_compiled_once(store: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compiler = store.engine.dialect.statement_compiler
    make_ready = compiler.__init__

    def noticed(self: Any, *arguments: Any, **more: Any) -> None:
        compiled.append(type(self).__name__)
        make_ready(self, *arguments, **more)

    monkeypatch.setattr(compiler, "__init__", noticed)
    given = rows_of_every_type()
    statement = select(given.c.number)
    for size in (1, 2, 500):
        with store.transaction() as tx:
            assert len(tx.with_rows(statement, given, VALUES[:1] * size).all()) == size
    assert len(compiled) == 1


def test_a_set_costs_little(store: Database) -> None:
    """Microseconds a row would be three to five; fifty says that something is compiled or converted row by row."""
    given = Rows(Column("id", BigInteger), Column("body", String))
    statement = select(given.c.id, given.c.body)
    values = [(number, "x" * 400) for number in range(500)]
    times = []
    with store.transaction() as tx:
        for _ in range(20):
            gc.collect()
            start = time.perf_counter()
            tx.with_rows(statement, given, values).all()
            times.append(time.perf_counter() - start)
    assert min(times) / len(values) < 50e-6
