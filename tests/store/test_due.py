"""Phases and polls whose time has come, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from matoolkit.messages import Kind
from matoolkit.store import due as store
from matoolkit.store.database import GuardFailed
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.schema import batches, phase_executions
from matoolkit.store.states import BatchStatus, ExecutionStatus, PhaseStatus
from tests.store.world import EARLIER, LATER, NOW, World


def due(world: World) -> list[tuple[int, int]]:
    with world.database.reading() as tx:
        return store.phases_due(tx, NOW)


def test_pending_phases_of_active_batches_fall_due_in_order(world: World) -> None:
    first, second = world.batch(), world.batch()
    late = world.phase(second, "a", status=PhaseStatus.PENDING, due_at=EARLIER)
    now = world.phase(first, "b", status=PhaseStatus.PENDING, due_at=NOW)
    world.phase(first, "c", status=PhaseStatus.PENDING, due_at=LATER)
    world.phase(first, "d", status=PhaseStatus.PENDING, due_at=None)
    world.phase(first, "e", due_at=EARLIER)
    assert due(world) == [(now, first), (late, second)]


@pytest.mark.parametrize(
    "values",
    [{"status": status} for status in BatchStatus if status != BatchStatus.ACTIVE]
    + [{"loaded_at": None}, {"rerunning_init_version": 2}],
)
def test_no_phase_falls_due_in_a_batch_that_is_not_ready(world: World, values: dict[str, Any]) -> None:
    batch = world.batch()
    phase = world.phase(batch, status=PhaseStatus.PENDING)
    assert due(world) == [(phase, batch)]
    world.set(batches, batch, **values)
    assert due(world) == []


def test_phases_are_started_once(world: World) -> None:
    batch = world.batch()
    first, second = (world.phase(batch, name, status=PhaseStatus.PENDING) for name in "ab")
    with world.database.transaction() as tx:
        store.start_phases(tx, [first], NOW)
        store.start_phases(tx, [], NOW)
    row = world.row(phase_executions, first)
    assert (row["status"], row["dispatched_at"], row["expansion_moved_at"]) == ("dispatched", NOW, NOW)
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.start_phases(tx, [second, first], NOW)
    assert world.row(phase_executions, second)["status"] == "pending"


def polling(world: World, kind: Kind, batch: int, number: int = 0, **values: Any) -> int:
    (member,) = world.members(batch, 1)
    own: dict[Kind, dict[str, Any]] = {
        Kind.STEP: {"batch_member_id": member, "generation": 1},
        Kind.INIT: {},
        Kind.ROLLBACK: {"rollback_name": "undo"},
        Kind.REMOVAL: {"batch_member_id": member, "generation": 1},
    }
    if kind is Kind.STEP:
        own[kind]["phase_execution_id"] = world.phase(batch, f"phase {member}")
    if kind is Kind.ROLLBACK:
        own[kind]["init_execution_id"] = world.execution(Kind.INIT, batch, runbook_version=member + 100)
    given = {"status": "polling", "poll_check_at": NOW, "poll_count": 3, "step_index": number, **values}
    return world.execution(kind, batch, **own[kind], **given)


def polls(world: World, size: int = 10) -> list[store.Poll]:
    with world.database.reading() as tx:
        return store.polls_due(tx, NOW, size)


@pytest.mark.parametrize("kind", list(Kind))
def test_polls_fall_due_while_no_job_is_out(world: World, kind: Kind) -> None:
    batch = world.batch()
    row = polling(world, kind, batch, runbook_version=7, step_name="watch")
    assert polls(world) == [store.Poll(kind, row, batch, 7, "watch", 3, "Wave")]
    table = EXECUTIONS[kind].table
    for values in ({"job_out": True}, {"poll_check_at": LATER}, {"poll_check_at": None}):
        world.set(table, row, **values)
        assert polls(world) == [], values
        world.set(table, row, job_out=False, poll_check_at=NOW)
    for status in ExecutionStatus:
        world.set(table, row, status=status)
        assert bool(polls(world)) == (status == ExecutionStatus.POLLING)


def test_polls_of_every_kind_come_together_and_a_bounded_part_at_a_time(world: World) -> None:
    batch = world.batch()
    rows = {(kind, polling(world, kind, batch, number)) for kind in Kind for number in (0, 1)}
    assert {(each.kind, each.id) for each in polls(world)} == rows
    assert polls(world, 3) == polls(world)[:3]


@pytest.mark.parametrize("kind", list(Kind))
def test_a_poll_that_is_announced_is_looked_at_again_later(world: World, kind: Kind) -> None:
    batch = world.batch()
    row, other = polling(world, kind, batch), polling(world, kind, batch, 1)
    with world.database.transaction() as tx:
        store.check_again(tx, kind, [(row, 3), (other, 2)], LATER)  # the other one has been polled meanwhile
        store.check_again(tx, kind, [], LATER)
    checks = world.column(EXECUTIONS[kind].table, "poll_check_at")
    assert (checks[row], checks[other]) == (LATER, NOW)
