"""Rows handed to a statement arrive as they were, whatever is in them and however many there are."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import BigInteger, Boolean, Column, Integer, String, bindparam, func, select

from matoolkit.store.rows import Rows
from matoolkit.store.states import ExecutionStatus
from matoolkit.store.types import UtcDateTime
from tests.store.world import NOW

if TYPE_CHECKING:
    from matoolkit.store.database import Database

EVERY = Rows(
    Column("number", Integer),
    Column("large", BigInteger),
    Column("words", String),
    Column("flag", Boolean),
    Column("at", UtcDateTime),
    name="every",
)
READ = select(EVERY.c.number, EVERY.c.large, EVERY.c.words, EVERY.c.flag, EVERY.c.at).order_by(EVERY.c.number)
HUGE = 2**63 - 1
WORDS = [
    "",
    " ",
    'it\'s "quoted"',
    "two\nlines\r\n\ttabbed",
    "back\\slash \\n \\u0041 \\\\",
    "Žluťoučký kůň 🐎 名前 \u200f\u2028",
    "NULL",
    "{1,2}",
    '{"a": [1, null]}',
    "100% %s %(x)s :colon ?",
    "\x01\x1f\x7f",
    "x" * 100_000,
]


def through(database: Database, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    with database.reading() as tx:
        return [tuple(row) for row in tx.with_rows(READ, EVERY, rows)]


@pytest.mark.parametrize("words", WORDS, ids=range(len(WORDS)))
def test_text_arrives_as_it_was(database: Database, words: str) -> None:
    rows = [(1, 1, words, True, NOW), (2, 2, words + words, False, NOW)]
    assert through(database, rows) == rows


def test_numbers_arrive_as_they_were(database: Database) -> None:
    rows = [(-(2**31), -HUGE - 1, "", True, NOW), (0, 0, "", False, NOW), (2**31 - 1, HUGE, "", True, NOW)]
    assert through(database, rows) == rows


def test_flags_are_as_true_as_they_were(database: Database) -> None:
    found = through(database, [(1, 1, "", True, NOW), (2, 1, "", False, NOW), (3, 1, "", None, NOW)])
    assert [row[3] for row in found] == [True, False, None]


def test_none_is_none_in_every_column(database: Database) -> None:
    rows = [(1, None, None, None, None), (2, 2, "two", True, NOW)]
    assert through(database, rows) == rows


def test_a_column_of_nothing_but_none(database: Database) -> None:
    rows = [(number, None, None, None, None) for number in range(3)]
    assert through(database, rows) == rows


def test_no_rows_are_no_rows(database: Database) -> None:
    assert through(database, []) == []


def test_ten_thousand_rows(database: Database) -> None:
    rows = [
        (number, HUGE - number, f"row {number}", number % 2 == 0, NOW + timedelta(microseconds=number))
        for number in range(10_000)
    ]
    assert through(database, rows) == rows


def test_times_keep_their_microseconds_and_lose_their_zone(database: Database) -> None:
    east = NOW.astimezone(timezone(timedelta(hours=9)))
    moments = [east, NOW.replace(microsecond=0), NOW.replace(microsecond=999_999), NOW.replace(year=1900)]
    found = through(database, [(number, 1, "", True, moment) for number, moment in enumerate(moments)])
    assert [row[4] for row in found] == moments


def test_times_compare_with_columns_of_times(database: Database) -> None:
    with database.reading() as tx:
        than = bindparam("than", type_=UtcDateTime)
        later = select(func.count()).select_from(EVERY.table).where(EVERY.c.at > than)
        rows = [(1, 1, "", True, NOW), (2, 1, "", True, NOW + timedelta(microseconds=1))]
        assert tx.with_rows(later, EVERY, rows, than=NOW).scalar_one() == 1


def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    with pytest.raises((TypeError, ValueError)):
        through(database, [(1, 1, "", True, NOW.replace(tzinfo=None))])


def test_states_are_text(database: Database) -> None:
    assert through(database, [(1, 1, ExecutionStatus.PENDING, True, NOW)]) == [(1, 1, "pending", True, NOW)]


def test_rows_may_come_from_a_generator(database: Database) -> None:
    with database.reading() as tx:
        found = tx.with_rows(READ, EVERY, ((number, 1, "", True, NOW) for number in range(3)))
        assert [row[0] for row in found] == [0, 1, 2]


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-(2**31), 2**31 - 1) | st.none(),
            st.integers(-(2**63), HUGE) | st.none(),
            # PostgreSQL has no text with a zero character in it.
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.none(),
            st.booleans() | st.none(),
            st.just(NOW) | st.none(),
        ),
        max_size=20,
    )
)
def test_whatever_is_in_them(database: Database, rows: list[tuple[Any, ...]]) -> None:
    # SQLite's flags are numbers.
    def given_order(row: tuple[Any, ...]) -> str:
        return repr([int(each) if isinstance(each, bool) else each for each in row])

    assert sorted(through(database, rows), key=given_order) == sorted(rows, key=given_order)
