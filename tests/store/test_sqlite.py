"""What SQLite is told on every connection, and what that means for who reads and who writes."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text, update

from matoolkit.store.database import open_database
from matoolkit.store.schema import batches
from tests.store.world import World

if TYPE_CHECKING:
    from matoolkit.store.database import Database

COUNT = update(batches).values(current_phase="x")


def pragma(database: Database, name: str) -> Any:
    with database.reading() as tx:
        return tx.connection.execute(text(f"PRAGMA {name}")).scalar_one()


@pytest.mark.parametrize(
    ("name", "expected"), [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("temp_store", 2)]
)
def test_every_connection_is_durable_and_strict(sqlite_database: Database, name: str, expected: object) -> None:
    with sqlite_database.reading(), sqlite_database.reading():  # so that the next one is not the first connection
        assert pragma(sqlite_database, name) == expected
    assert pragma(sqlite_database, name) == expected


def test_only_a_simulation_s_database_may_be_lost_with_the_machine(sqlite_database: Database) -> None:
    hasty = open_database(sqlite_database.engine.url, durable=False)
    assert (pragma(hasty, "synchronous"), pragma(sqlite_database, "synchronous")) == (0, 2)
    hasty.close()


def test_writers_take_turns_from_their_first_statement_on(sqlite_database: Database) -> None:
    """A transaction that only read so far holds the others off already: what it read is what it changes."""
    began, finished = threading.Event(), threading.Event()
    order: list[str] = []

    def second() -> None:
        began.set()
        with sqlite_database.transaction() as tx:
            order.append("second")
            tx.execute(COUNT)
        finished.set()

    with sqlite_database.transaction() as tx:
        assert tx.connection.execute(text("SELECT count(*) FROM batches")).scalar_one() == 0
        thread = threading.Thread(target=second)
        thread.start()
        began.wait()
        assert not finished.wait(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_readers_neither_wait_nor_make_anybody_wait(sqlite_database: Database) -> None:
    world = World(sqlite_database)
    batch = world.batch()
    with sqlite_database.reading() as reader:
        read = text("SELECT current_phase FROM batches")
        assert reader.connection.execute(read).scalar_one() is None
        with sqlite_database.transaction() as writer:
            writer.execute(COUNT)
            assert world.row(batches, batch)["current_phase"] is None  # another reader, while somebody writes
        # The writer has committed although somebody reads, who goes on seeing what was there at the first look.
        assert reader.connection.execute(read).scalar_one() is None
    assert world.row(batches, batch)["current_phase"] == "x"


def test_what_refers_to_nothing_is_refused(sqlite_database: Database) -> None:
    with pytest.raises(Exception, match="FOREIGN KEY"), sqlite_database.transaction() as tx:
        tx.connection.execute(
            text(
                "INSERT INTO phase_executions (batch_id, phase_name, offset_minutes, runbook_version)"
                " VALUES (4711, 'x', 0, 1)"
            )
        )
