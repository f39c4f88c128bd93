"""Batches: read as they are, moved only from the states they may be in, and done when nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from matoolkit.messages import Kind
from matoolkit.store import batches as store
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.states import OPEN_BATCH, BatchStatus, ExecutionStatus, PhaseStatus
from tests.store.world import LATER, NOW, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from matoolkit.store.database import Transaction

MOVES: dict[str, tuple[Callable[[Transaction, int], bool], set[BatchStatus], dict[str, Any]]] = {
    "start_init": (
        lambda tx, batch: store.start_init(tx, batch, LATER),
        {BatchStatus.DETECTED},
        {"status": "init_dispatched", "init_dispatched_at": LATER},
    ),
    "activate": (
        store.activate,
        {BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED},
        {"status": "active"},
    ),
    "complete": (
        lambda tx, batch: store.complete(tx, batch, BatchStatus.COMPLETED, LATER),
        set(OPEN_BATCH),
        {"status": "completed", "completed_at": LATER, "cancelled_by": None, "winding_up": False},
    ),
    "break_off": (
        lambda tx, batch: store.break_off(tx, batch, BatchStatus.CANCELLED, LATER, "anna"),
        set(OPEN_BATCH),
        {"status": "cancelled", "completed_at": LATER, "cancelled_by": "anna", "winding_up": True},
    ),
}


@pytest.mark.parametrize("status", BatchStatus)
@pytest.mark.parametrize("move", MOVES)
def test_a_batch_moves_from_where_it_may_and_nothing_else_does(world: World, move: str, status: BatchStatus) -> None:
    act, allowed, expected = MOVES[move]
    batch, other = world.batch(status=status), world.batch(status=status)
    before = {each: world.row(batches, each) for each in (batch, other)}
    with world.database.transaction() as tx:
        assert act(tx, batch) is (status in allowed)
    assert world.row(batches, batch) == before[batch] | (expected if status in allowed else {})
    assert world.row(batches, other) == before[other]


def test_a_rerun_of_init_is_over_for_its_own_version_only(world: World) -> None:
    batch = world.batch(rerunning_init_version=2)
    with world.database.transaction() as tx:
        assert not store.init_rerun_over(tx, batch, 1)
        assert store.init_rerun_over(tx, batch, 2)
        assert not store.init_rerun_over(tx, batch, 2)
    assert world.row(batches, batch)["rerunning_init_version"] is None


def test_ending_ends_a_rerun_of_init_too(world: World) -> None:
    batch = world.batch(rerunning_init_version=2)
    with world.database.transaction() as tx:
        store.complete(tx, batch, BatchStatus.FAILED, NOW)
    assert world.row(batches, batch)["rerunning_init_version"] is None


def test_a_batch_is_read_with_its_runbook(world: World) -> None:
    first, second = world.batch(started_at=LATER), world.batch(status=BatchStatus.DETECTED, loaded=False)
    with world.database.reading() as tx:
        found = store.read(tx, [second, first, first, 4711])
        assert store.read(tx, []) == {}
    assert set(found) == {first, second}
    batch = found[first]
    assert (batch.runbook_name, batch.runbook_version, batch.status, batch.loaded_at) == ("Wave", 1, "active", NOW)
    assert batch.is_active
    assert batch.start_time == batch.batch_start_time
    assert not found[second].is_active
    assert found[second].loaded_at is None


def test_a_manual_batch_starts_with_its_first_advance(world: World) -> None:
    batch = world.batch(is_manual=True, started_at=LATER)
    with world.database.reading() as tx:
        assert store.read(tx, [batch])[batch].start_time == LATER


def test_open_batches_are_those_that_have_not_ended(world: World) -> None:
    by_status = {status: world.batch(status=status) for status in BatchStatus}
    with world.database.reading() as tx:
        assert [each.id for each in store.open_batches(tx)] == [by_status[status] for status in OPEN_BATCH]


def finished(world: World) -> tuple[int, int, int, list[int]]:
    """A batch whose only phase is closed and whose steps have succeeded."""
    batch = world.batch()
    members = world.members(batch, 2)
    phase = world.phase(batch)
    world.steps(phase, members, 1, status=ExecutionStatus.SUCCEEDED)
    world.set(phase_executions, phase, status=PhaseStatus.COMPLETED)
    return batch, phase, members[0], members


def done(world: World, *ids: int) -> list[tuple[int, bool, bool]]:
    with world.database.reading() as tx:
        found = store.done_among(tx, ids)
        assert store.done(tx, 10) == [each for each, *_ in found]
    return found


def test_a_batch_with_nothing_left_is_done(world: World) -> None:
    batch, *_ = finished(world)
    running = world.batch()
    world.phase(running)
    assert done(world, running, batch, batch) == [(batch, True, False)]
    with world.database.reading() as tx:
        assert store.done_among(tx, []) == []


@pytest.mark.parametrize("left", ["phase", "pending", "polling", "status", "loaded_at", "catch_up"])
def test_a_batch_with_anything_left_is_not_done(world: World, left: str) -> None:
    batch, phase, member, _ = finished(world)
    leave: dict[str, Callable[[], object]] = {
        "phase": lambda: world.phase(batch, "another", status=PhaseStatus.PENDING),
        "pending": lambda: world.set(step_executions, 1, status="pending"),
        "polling": lambda: world.set(step_executions, 1, status="polling"),
        "status": lambda: world.set(batches, batch, status="init_dispatched"),
        "loaded_at": lambda: world.set(batches, batch, loaded_at=None),
        "catch_up": lambda: world.set(batch_members, member, catch_up_due=True),
    }
    leave[left]()
    assert world.row(phase_executions, phase)["status"] == "completed"
    assert done(world, batch) == []


def test_a_member_who_left_owes_nothing(world: World) -> None:
    batch, _, member, _ = finished(world)
    world.set(batch_members, member, catch_up_due=True, status="removed")
    assert done(world, batch) == [(batch, True, False)]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["completed", "failed"], (True, True)),
        (["failed", "skipped"], (False, True)),
        (["skipped", "superseded"], (False, False)),
    ],
)
def test_how_the_phases_of_a_done_batch_went(world: World, statuses: list[str], expected: tuple[bool, bool]) -> None:
    batch = world.batch()
    for number, status in enumerate(statuses):
        world.set(phase_executions, world.phase(batch, f"phase {number}"), status=status)
    assert done(world, batch) == [(batch, *expected)]


def test_done_takes_a_bounded_part(world: World) -> None:
    ids = [finished(world)[0] for _ in range(3)]
    with world.database.reading() as tx:
        assert store.done(tx, 2) == ids[:2]


def test_phases_to_come_are_those_not_started_for_everybody(world: World) -> None:
    pending, unexpanded, expanded, ended = (world.batch() for _ in range(4))
    world.phase(pending, status=PhaseStatus.PENDING)
    world.phase(unexpanded, expanded_at=None)
    world.phase(unexpanded, "another", expanded_at=None)
    world.phase(expanded)
    world.phase(ended, status=PhaseStatus.COMPLETED)
    with world.database.reading() as tx:
        everything = [pending, unexpanded, expanded, ended]
        assert store.with_phases_to_come(tx, everything) == {pending, unexpanded}
        assert store.with_phases_to_come(tx, [expanded]) == set()
        assert store.with_phases_to_come(tx, []) == set()


def test_active_members_are_counted(world: World) -> None:
    batch, other = world.batch(), world.batch()
    members = world.members(batch, 4)
    world.members(other, 2)
    world.set(batch_members, members[0], status="failed")
    with world.database.reading() as tx:
        assert (store.active_members(tx, batch), store.active_members(tx, other)) == (3, 2)


def test_an_open_execution_of_another_kind_does_not_keep_a_batch(world: World) -> None:
    batch, *_ = finished(world)
    world.execution(Kind.INIT, batch)
    assert done(world, batch) == [(batch, True, False)]
