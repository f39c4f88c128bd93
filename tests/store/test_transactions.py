"""What a transaction promises: all or nothing, guards that insist, and what follows only after the commit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import insert, update

from matoolkit.store import creation, members
from matoolkit.store.database import GuardFailed
from matoolkit.store.errors import TransactionConflict
from matoolkit.store.locking import IDS
from matoolkit.store.members import FAIL
from matoolkit.store.schema import batch_members, batches
from tests.store.world import NOW, World, publish

if TYPE_CHECKING:
    from matoolkit.store.database import Database

RENAME = update(batches).values(created_by="x")


class Disaster(Exception):
    """Something that is not the database's fault."""


def test_what_is_done_in_a_block_that_fails_is_undone(world: World) -> None:
    batch = world.batch()

    def fail() -> None:
        with world.database.transaction() as tx:
            tx.execute(RENAME)
            raise Disaster

    with pytest.raises(Disaster):
        fail()
    assert world.row(batches, batch)["created_by"] is None


def test_what_follows_a_commit_sees_it(world: World) -> None:
    batch = world.batch()
    seen: list[str] = []
    with world.database.transaction() as tx:
        tx.execute(RENAME)
        tx.after_commit(lambda: seen.append(world.row(batches, batch)["created_by"]))
        tx.after_commit(lambda: seen.append("second"))
        assert seen == []
    assert seen == ["x", "second"]


def test_nothing_follows_a_failure(world: World) -> None:
    seen: list[str] = []

    def fail() -> None:
        with world.database.transaction() as tx:
            tx.after_commit(lambda: seen.append("followed"))
            raise Disaster

    with pytest.raises(Disaster):
        fail()
    assert seen == []


def test_nothing_follows_a_commit_that_fails(postgres_database: Database) -> None:
    seen: list[str] = []
    late = "ALTER TABLE batches ALTER CONSTRAINT fk_batches_runbook_id DEFERRABLE INITIALLY DEFERRED"

    def fail_at_the_commit() -> None:
        with postgres_database.transaction() as tx:
            tx.connection.exec_driver_sql(late)
            of_no_runbook = {"runbook_id": 4711, "runbook_name_folded": "x", "detected_at": NOW, "is_manual": True}
            tx.connection.execute(insert(batches), of_no_runbook)
            tx.after_commit(lambda: seen.append("followed"))

    with pytest.raises(TransactionConflict):
        fail_at_the_commit()
    assert seen == []


def test_a_guarded_change_that_finds_its_rows_stays(world: World) -> None:
    ids = world.members(world.batch())
    with world.database.transaction() as tx:
        tx.change_rows(FAIL, IDS, [(each,) for each in ids], now=NOW)
    assert set(world.column(batch_members, "status").values()) == {"failed"}


def test_a_guarded_change_that_misses_one_row_undoes_the_whole_transaction(world: World) -> None:
    batch = world.batch()
    ids = world.members(batch)
    world.set(batch_members, ids[1], status="removed")

    def change() -> None:
        with world.database.transaction() as tx:
            tx.execute(RENAME)
            tx.change_rows(FAIL, IDS, [(each,) for each in ids], now=NOW)

    with pytest.raises(GuardFailed, match="2 of 3 rows") as caught:
        change()
    assert caught.value.retryable
    assert list(world.column(batch_members, "status").values()) == ["active", "removed", "active"]
    assert world.row(batches, batch)["created_by"] is None


def test_a_guarded_change_of_one_row_insists_too(world: World) -> None:
    batch = world.batch(loaded=False)
    with world.database.transaction() as tx:
        creation.loaded(tx, batch, NOW)
    with pytest.raises(GuardFailed, match="0 of 1 rows"), world.database.transaction() as tx:
        creation.loaded(tx, batch, NOW)


def test_no_rows_are_no_statement(world: World) -> None:
    with world.database.transaction() as tx:
        tx.change_rows(FAIL, IDS, [], now=NOW)


def test_reading_sees_what_is_committed_and_nothing_else(world: World) -> None:
    batch = world.batch()
    with world.database.transaction() as tx:
        tx.execute(RENAME)
        assert world.row(batches, batch)["created_by"] is None
    assert world.row(batches, batch)["created_by"] == "x"


def test_a_connection_is_as_good_as_new_after_a_failure(world: World) -> None:
    for _ in range(20):
        with pytest.raises(Disaster), world.database.transaction():
            raise Disaster
        with world.database.reading() as tx:
            assert members.owed_removal(tx, 1) == []


def test_nothing_is_kept_for_each_execution(world: World) -> None:
    """A statement that is made anew every time would be kept, compiled, every time."""
    for _ in range(2):
        world.phase(world.batch())
        with world.database.transaction() as tx:
            publish(tx)
    kept = len(world.database._prepared)
    for _ in range(5):
        world.phase(world.batch())
        with world.database.transaction() as tx:
            publish(tx)
    # `World.phase` itself makes one statement anew.
    assert len(world.database._prepared) <= kept + 5
