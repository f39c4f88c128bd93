"""Locks on PostgreSQL, with two connections: who waits for whom, who does not, and in which order locks are taken."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from devtools.golden_statements import compiled, dialects
from matoolkit.store import creation, members
from matoolkit.store.errors import TransactionConflict
from matoolkit.store.locking import (
    LOCK_BATCHES,
    LOCK_MEMBERS,
    SHARE_BATCHES,
    lock_batches,
    lock_members,
    share_batches,
)
from tests.store.world import NOW, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matoolkit.store.database import Database, Transaction


@pytest.fixture
def world(postgres_database: Database) -> World:
    return World(postgres_database)


@contextmanager
def impatient(world: World) -> Iterator[Transaction]:
    """Another one's transaction, which does not wait."""
    with world.database.transaction() as tx:
        tx.connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
        yield tx


def has_to_wait(world: World, act: Callable[[Transaction], object]) -> bool:
    try:
        with impatient(world) as tx:
            act(tx)
    except TransactionConflict:
        return True
    return False


def test_a_member_that_is_locked_makes_others_wait_and_its_neighbours_do_not(world: World) -> None:
    first, second, third = world.members(world.batch())
    with world.database.transaction() as tx:
        lock_members(tx, [first, third])
        assert has_to_wait(world, lambda other: lock_members(other, [first]))
        assert has_to_wait(world, lambda other: lock_members(other, [second, third]))
        assert not has_to_wait(world, lambda other: lock_members(other, [second]))
    assert not has_to_wait(world, lambda other: lock_members(other, [first]))


def test_batches_are_shared_by_many_and_locked_by_one(world: World) -> None:
    batch, other_batch = world.batch(), world.batch()
    with world.database.transaction() as tx:
        share_batches(tx, [batch])
        assert not has_to_wait(world, lambda other: share_batches(other, [batch]))
        assert has_to_wait(world, lambda other: lock_batches(other, [batch]))
        assert not has_to_wait(world, lambda other: lock_batches(other, [other_batch]))
    with world.database.transaction() as tx:
        lock_batches(tx, [batch])
        assert has_to_wait(world, lambda other: share_batches(other, [batch]))
        assert has_to_wait(world, lambda other: lock_batches(other, [batch]))
        assert not has_to_wait(world, lambda other: share_batches(other, [other_batch]))


def test_who_only_refers_to_a_locked_row_does_not_wait(world: World) -> None:
    batch = world.batch()
    ids = world.members(batch)
    phase = world.phase(batch)
    with world.database.transaction() as tx:
        lock_batches(tx, [batch])
        lock_members(tx, ids)
        found = [("new", "new", "{}")]
        assert not has_to_wait(world, lambda other: creation.add_members(other, batch, found, NOW, late=True))
        step = text(
            "INSERT INTO step_executions (batch_id, runbook_version, step_name, step_index, worker_id, function_name,"
            f" timeout_sec, phase_execution_id, batch_member_id, generation)"
            f" VALUES ({batch}, 1, 's', 0, 'w', 'f', 1, {phase}, {ids[0]}, 1)"
        )
        assert not has_to_wait(world, lambda other: other.connection.execute(step))


def test_who_reads_does_not_wait(world: World) -> None:
    ids = world.members(world.batch())
    with world.database.transaction() as tx:
        lock_members(tx, ids)
        assert not has_to_wait(world, lambda other: members.read(other, ids))


def test_a_chunk_of_members_is_locked_and_the_rest_is_not(world: World) -> None:
    batch = world.batch()
    ids = world.members(batch, 5)
    with world.database.transaction() as tx:
        assert list(members.lock_chunk(tx, batch, 0, 3)) == ids[:3]
        assert has_to_wait(world, lambda other: lock_members(other, ids[2:3]))
        assert not has_to_wait(world, lambda other: lock_members(other, ids[3:]))


def test_locks_in_any_order_are_taken_in_one_order(world: World) -> None:
    """Two that were to lock as they were told would wait for each other within a few rounds."""
    ids = world.members(world.batch(), 20)

    def lock_often(order: list[int]) -> None:
        for _ in range(50):
            with world.database.transaction() as tx:
                lock_members(tx, order)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(lock_often, order) for order in (ids, ids[::-1], ids[10:] + ids[:10], ids)]:
            done.result()


@pytest.mark.parametrize(
    ("statement", "table", "words"),
    [
        (LOCK_BATCHES, "batches", "FOR NO KEY UPDATE"),
        (SHARE_BATCHES, "batches", "FOR SHARE"),
        (LOCK_MEMBERS, "batch_members", "FOR NO KEY UPDATE"),
    ],
)
def test_a_statement_that_locks_does_so_by_ascending_id(statement: object, table: str, words: str) -> None:
    text_of = compiled(statement, dialects()["postgresql"])
    assert text_of.endswith(f"ORDER BY {table}.id {words} OF {table}")


def test_on_sqlite_a_transaction_holds_everything_anyway(sqlite_database: Database) -> None:
    ids = World(sqlite_database).members(World(sqlite_database).batch())
    with sqlite_database.transaction() as tx:
        lock_members(tx, ids)
        lock_batches(tx, [1])
        share_batches(tx, [1])
