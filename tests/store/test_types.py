"""Moments come back as they went in, always with the zone UTC; states are written into statements."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, bindparam, insert, select, text
from sqlalchemy.exc import StatementError

from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus
from matoolkit.store.types import State, UtcDateTime, storage_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matoolkit.store.database import Database

moments = Table("moments", MetaData(), Column("id", Integer, primary_key=True), Column("at", UtcDateTime))
ZONES = [UTC, timezone(timedelta(hours=5, minutes=45)), timezone(-timedelta(hours=11))]
AT = datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=UTC)
WRITE = insert(moments).values(id=bindparam("number"), at=bindparam("at"))
READ = select(moments.c.at).order_by(moments.c.at)


@pytest.fixture
def keeping(database: Database) -> Iterator[Database]:
    moments.create(database.engine)
    yield database
    moments.drop(database.engine)


@pytest.mark.parametrize("zone", ZONES, ids=str)
@pytest.mark.parametrize("microsecond", [0, 1, 999_999])
def test_a_moment_comes_back_to_the_microsecond_with_the_zone_utc(
    keeping: Database, zone: timezone, microsecond: int
) -> None:
    moment = AT.replace(microsecond=microsecond).astimezone(zone)
    with keeping.transaction() as tx:
        tx.execute(WRITE, number=1, at=moment)
    with keeping.reading() as tx:
        read: datetime = tx.execute(READ).scalar_one()
    assert read == moment
    assert read.tzinfo is UTC or read.utcoffset() == timedelta(0)


def test_no_moment_stays_none(keeping: Database) -> None:
    with keeping.transaction() as tx:
        tx.execute(WRITE, number=1, at=None)
        assert tx.execute(READ).scalar_one() is None


def test_a_moment_without_a_zone_is_refused(keeping: Database) -> None:
    naive = AT.replace(tzinfo=None)
    with pytest.raises((ValueError, StatementError), match="has no zone"), keeping.transaction() as tx:
        tx.execute(WRITE, number=1, at=naive)
    with keeping.reading() as tx:
        assert tx.execute(READ).all() == []


def test_moments_are_ordered_by_when_they_are(keeping: Database) -> None:
    given = [AT + timedelta(seconds=seconds) for seconds in (3, 1, 2, 0)] + [AT.replace(microsecond=0, year=1999)]
    with keeping.transaction() as tx:
        for number, moment in enumerate(given):
            tx.execute(WRITE, number=number, at=moment.astimezone(ZONES[number % 3]))
        assert tx.execute(READ).scalars() == sorted(given)


def test_the_session_s_zone_does_not_matter(postgres_database: Database) -> None:
    moments.create(postgres_database.engine)
    with postgres_database.transaction() as tx:
        tx.connection.execute(text("SET LOCAL TIME ZONE 'Asia/Kathmandu'"))
        tx.execute(WRITE, number=1, at=AT)
        read = tx.execute(READ).scalar_one()
    assert (read, read.utcoffset()) == (AT, timedelta(0))


def test_storage_text_sorts_as_it_counts() -> None:
    assert storage_text(AT.astimezone(ZONES[1])) == "2026-03-29 01:59:59.999999"
    assert storage_text(AT.replace(microsecond=0)) < storage_text(AT)


def test_states_stand_in_the_statement() -> None:
    column = Column("status", State(32))
    assert str(column == ExecutionStatus.PENDING) == "status = 'pending'"
    assert str(column.in_(OPEN_EXECUTION)) == "status IN ('pending', 'dispatched', 'polling')"
    assert str(column != ExecutionStatus.PENDING) == "status != 'pending'"


def test_other_values_do_not() -> None:
    column = Column("status", State(32))
    assert str(column == "pend'ing") == "status = :status_1"
    assert str(column == bindparam("given")) == "status = :given"
