"""What goes wrong is told apart by whether trying again helps, and told without anybody's data."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import exc, insert, text

from devtools.postgres import PostgresServer
from matoolkit.store import database as database_module
from matoolkit.store import errors
from matoolkit.store.database import open_database
from matoolkit.store.errors import (
    DatabaseFull,
    DatabaseUnavailable,
    RuleBroken,
    StoreError,
    TransactionConflict,
    translated,
)
from matoolkit.store.migrate import migrate
from matoolkit.store.schema import batch_members
from tests.store.world import NOW, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.store.database import Database, Transaction


def failing(database: Database, act: Callable[[Transaction], object]) -> StoreError:
    """The error of a transaction that has to fail."""
    with pytest.raises(StoreError) as caught, database.transaction() as tx:
        act(tx)
    return caught.value


def adding(batch: int, **values: Any) -> Callable[[Transaction], object]:
    row = {"batch_id": batch, "member_key": "Anna", "member_key_folded": "anna", "data_json": "{}", "added_at": NOW}
    return lambda tx: tx.connection.execute(insert(batch_members), row | values)


def test_writing_what_somebody_else_has_written_is_a_conflict(world: World) -> None:
    batch = world.batch()
    with world.database.transaction() as tx:
        adding(batch)(tx)
    error = failing(world.database, adding(batch))
    assert (type(error), error.retryable) == (TransactionConflict, True)
    assert "anna" not in str(error).lower()
    assert "unique" in str(error).lower()


def test_referring_to_what_somebody_else_has_removed_is_a_conflict(world: World) -> None:
    assert type(failing(world.database, adding(4711))) is TransactionConflict


@pytest.mark.parametrize("values", [{"status": "bored"}, {"data_json": None}])
def test_breaking_a_rule_is_not_worth_trying_again(world: World, values: dict[str, Any]) -> None:
    error = failing(world.database, adding(world.batch(), member_key="Secret@example.test", **values))
    assert (type(error), error.retryable) == (RuleBroken, False)
    assert "secret@" not in str(error).lower()


def test_a_fault_of_the_program_stays_what_it_is(database: Database) -> None:
    with pytest.raises(exc.DBAPIError, match="no_such_table"), database.transaction() as tx:
        tx.connection.execute(text("SELECT * FROM no_such_table WHERE x = :x"), {"x": "Secret@example.test"})


def test_no_error_quotes_what_a_statement_was_given(database: Database) -> None:
    with pytest.raises(exc.DBAPIError) as caught, database.transaction() as tx:
        tx.connection.execute(text("SELECT * FROM no_such_table WHERE x = :x"), {"x": "Secret@example.test"})
    assert "Secret@" not in str(caught.value)


def test_a_locked_sqlite_database_is_a_conflict(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "_BUSY_TIMEOUT_SECONDS", 0.05)
    impatient = open_database(sqlite_database.engine.url)
    with sqlite_database.transaction():
        error = failing(impatient, lambda _: None)
    impatient.close()
    assert (type(error), str(error)) == (TransactionConflict, "database is locked")


def test_a_lock_that_is_not_given_in_time_is_a_conflict(postgres_database: Database) -> None:
    lock, limit = text("LOCK TABLE batches"), text("SET LOCAL lock_timeout = '50ms'")
    with postgres_database.transaction() as tx:
        tx.connection.execute(lock)
        error = failing(postgres_database, lambda tx: (tx.connection.execute(limit), tx.connection.execute(lock)))
    assert type(error) is TransactionConflict


def test_a_deadlock_is_a_conflict_for_one_and_nothing_for_the_other(postgres_database: Database) -> None:
    world = World(postgres_database)
    ids = [world.batch(), world.batch()]
    both_hold_one = threading.Barrier(2)
    outcomes: list[object] = []
    take = text("SELECT id FROM batches WHERE id = :id FOR UPDATE")

    def lock(first: int, second: int) -> None:
        try:
            with postgres_database.transaction() as tx:
                tx.connection.execute(take, {"id": first})
                both_hold_one.wait()
                tx.connection.execute(take, {"id": second})
        except StoreError as error:
            outcomes.append(type(error))
        else:
            outcomes.append("done")

    threads = [threading.Thread(target=lock, args=order) for order in (ids, ids[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, outcomes)) == sorted(map(str, ["done", TransactionConflict]))


def test_a_full_disk_is_told_as_one(sqlite_database: Database) -> None:
    batch = World(sqlite_database).batch()

    def fill(tx: Transaction) -> None:
        pages = tx.connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        tx.connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 2}")
        adding(batch, data_json="x" * 1_000_000)(tx)

    error = failing(sqlite_database, fill)
    assert (type(error), error.retryable) == (DatabaseFull, True)
    assert "database or disk is full" in str(error)
    assert str(sqlite_database.engine.url.database) in str(error)


def test_a_database_that_may_only_be_read_is_told_as_one(sqlite_database: Database) -> None:
    batch = World(sqlite_database).batch()

    def write(tx: Transaction) -> None:
        tx.connection.exec_driver_sql("PRAGMA query_only = ON")
        adding(batch)(tx)

    assert type(failing(sqlite_database, write)) is DatabaseFull


def test_a_file_that_is_no_database(tmp_path: Any) -> None:
    (tmp_path / "notes.db").write_text("this is not a database, but long enough to look at" * 100)
    database = open_database(f"sqlite:///{tmp_path / 'notes.db'}")
    error = failing(database, lambda _: None)
    assert type(error) is DatabaseUnavailable
    assert "notes.db: file is not a database" in str(error)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    # It is crashed, and what was committed has to be there afterwards.
    with PostgresServer(fsync=True) as server:
        yield server


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_stops_is_unavailable_and_then_there_again(own_server: PostgresServer, mode: Any) -> None:
    own_server.start()
    database = open_database(own_server.create_database(f"stopped_{mode}"))
    migrate(database)
    world = World(database)
    batch = world.batch()

    def stop(tx: Transaction) -> None:
        own_server.stop(mode)
        adding(batch)(tx)

    interrupted = failing(database, stop)
    refused = failing(database, adding(batch))
    assert [type(interrupted), type(refused)] == [DatabaseUnavailable, DatabaseUnavailable]
    assert interrupted.retryable
    assert str(refused).startswith(f"the PostgreSQL database stopped_{mode} on ")
    own_server.start()
    with database.transaction() as tx:
        adding(batch)(tx)
    assert len(world.rows(batch_members)) == 1
    database.close()


def test_a_session_that_is_ended_is_unavailable(postgres_server: PostgresServer, postgres_database: Database) -> None:
    name = postgres_database.engine.url.database

    def end(tx: Transaction) -> None:
        tx.connection.execute(text("SELECT 1"))
        assert postgres_server.terminate_backends(name) >= 1
        tx.connection.execute(text("SELECT 1"))

    assert type(failing(postgres_database, end)) is DatabaseUnavailable
    with postgres_database.reading() as tx:
        assert tx.connection.execute(text("SELECT 1")).scalar_one() == 1


def test_a_statement_that_ran_into_our_time_limit_is_a_conflict(postgres_database: Database) -> None:
    limit = text("SET LOCAL statement_timeout = '50ms'")
    slow = text("SELECT pg_sleep(5)")
    error = failing(postgres_database, lambda tx: (tx.connection.execute(limit), tx.connection.execute(slow)))
    assert type(error) is TransactionConflict


class FromServer(Exception):
    """What a driver raises, with the standard's code."""

    def __init__(self, state: str | None) -> None:
        super().__init__("secret\nDETAIL: Key (member_key)=(anna)")
        self.sqlstate = state


@pytest.mark.parametrize(
    ("state", "kind", "expected"),
    [
        ("40001", exc.OperationalError, TransactionConflict),
        ("23505", exc.IntegrityError, TransactionConflict),
        ("23514", exc.IntegrityError, RuleBroken),
        ("53100", exc.OperationalError, DatabaseFull),
        ("25006", exc.InternalError, DatabaseUnavailable),
        ("57P03", exc.OperationalError, DatabaseUnavailable),
        (None, exc.OperationalError, DatabaseUnavailable),
        ("22P02", exc.DataError, None),
        ("42P01", exc.ProgrammingError, None),
    ],
)
def test_what_a_server_says(state: str | None, kind: type[exc.DBAPIError], expected: type[StoreError] | None) -> None:
    found = translated(kind("SELECT", {}, FromServer(state)))
    assert (None if found is None else type(found)) == expected
    assert found is None or str(found) == "secret"  # the first line: the detail has the row in it


def test_every_error_says_what_it_is() -> None:
    for kind in (errors.SchemaMismatch, RuleBroken, DatabaseFull, DatabaseUnavailable, TransactionConflict):
        assert str(kind()) == (kind.__doc__ or "").partition("\n")[0]
