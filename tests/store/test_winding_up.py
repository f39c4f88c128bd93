"""A batch that ended before its time: what is in it ends too, in chunks, and what has begun to be undone goes on."""

from __future__ import annotations

import pytest

from matoolkit.messages import Kind
from matoolkit.store import batches as batch_store
from matoolkit.store import winding_up as store
from matoolkit.store.executions import EXECUTIONS
from matoolkit.store.schema import batch_members, batches, init_executions, phase_executions, step_executions
from matoolkit.store.states import OPEN_BATCH, BatchStatus, MemberStatus, PhaseStatus
from tests.store.world import LATER, NOW, World


def pending(world: World) -> list[tuple[int, str, str | None]]:
    with world.database.reading() as tx:
        return store.winding_up(tx)


def test_a_cancelled_batch_takes_everything_open_with_it(world: World) -> None:
    batch, other = world.batch(), world.batch()
    members, others = world.members(batch, 4), world.members(other, 1)
    phase, later = world.phase(batch), world.phase(batch, "later", status=PhaseStatus.PENDING)
    elsewhere = world.phase(other)
    steps, kept = world.steps(phase, members, 1), world.steps(elsewhere, others, 1)
    first, second, third, fourth = (steps[each][0] for each in members)
    world.set(step_executions, first, status="succeeded")
    world.set(step_executions, second, status="dispatched", job_out=True)
    world.set(step_executions, third, retry_after=LATER)
    world.set(batch_members, members[0], status="completed")
    world.set(batch_members, members[3], catch_up_due=True)
    init = world.execution(Kind.INIT, batch)
    begun = {
        Kind.ROLLBACK: world.execution(Kind.ROLLBACK, batch, rollback_name="undo", step_execution_id=first),
        Kind.REMOVAL: world.execution(Kind.REMOVAL, batch, batch_member_id=members[0], generation=1),
    }
    with world.database.transaction() as tx:
        assert store.cancel_batch(tx, batch, LATER, by="anna")
        assert not store.cancel_batch(tx, batch, LATER, by="bert")
    row = world.row(batches, batch)
    assert (row["status"], row["cancelled_by"], row["winding_up"]) == ("cancelled", "anna", False)
    expected = {phase: "cancelled", later: "cancelled", elsewhere: "dispatched"}
    assert world.column(phase_executions, "status") == expected
    ended = {first: "succeeded", second: "cancelled", third: "cancelled", fourth: "cancelled"}
    assert world.column(step_executions, "status") == ended | {kept[others[0]][0]: "pending"}
    assert world.row(step_executions, second)["job_out"] is True  # its hands are not still before it reports
    assert world.row(step_executions, third)["retry_after"] is None
    gone = dict.fromkeys(members, "removed") | {members[0]: "completed", others[0]: "active"}
    assert world.column(batch_members, "status") == gone
    left = world.row(batch_members, members[3])
    assert (left["removed_by"], left["removed_at"], left["catch_up_due"]) == ("anna", LATER, False)
    assert world.row(batch_members, members[0])["removed_by"] is None
    assert world.row(init_executions, init)["status"] == "cancelled"
    for kind, execution in begun.items():
        assert world.row(EXECUTIONS[kind].table, execution)["status"] == "pending"
    assert pending(world) == []


def test_winding_up_goes_on_in_chunks_until_nothing_is_left(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 5)
    world.steps(world.phase(batch), members, 2)
    with world.database.transaction() as tx:
        store.cancel_batch(tx, batch, LATER, by="anna", size=3)
    assert pending(world) == [(batch, "cancelled", "anna")]
    assert list(world.column(step_executions, "status").values()) == ["cancelled"] * 3 + ["pending"] * 7
    assert list(world.column(batch_members, "status").values()) == ["removed"] * 3 + ["active"] * 2
    rounds = 0
    while found := pending(world):
        for each, status, by in found:
            with world.database.transaction() as tx:
                store.wind_up(tx, each, status, by, now=LATER, size=3)
        rounds += 1
    assert rounds == 3
    assert set(world.column(step_executions, "status").values()) == {"cancelled"}
    assert set(world.column(batch_members, "status").values()) == {"removed"}


def test_members_of_a_batch_that_failed_have_failed(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 2)
    with world.database.transaction() as tx:
        batch_store.break_off(tx, batch, BatchStatus.FAILED, NOW)
        store.wind_up(tx, batch, BatchStatus.FAILED, None, now=LATER, size=10)
    rows = world.rows(batch_members)
    assert {row["id"]: row["status"] for row in rows} == dict.fromkeys(members, MemberStatus.FAILED)
    assert [(row["failed_at"], row["removed_at"]) for row in rows] == [(LATER, None)] * 2


@pytest.mark.parametrize("status", [each for each in BatchStatus if each not in OPEN_BATCH])
def test_a_batch_that_has_ended_cannot_be_cancelled(world: World, status: BatchStatus) -> None:
    batch = world.batch(status=status)
    world.members(batch)
    with world.database.transaction() as tx:
        assert not store.cancel_batch(tx, batch, LATER, by="anna")
    assert world.row(batches, batch)["status"] == status
    assert set(world.column(batch_members, "status").values()) == {"active"}
