"""Phases: written in chunks, each once, closed when everybody is through, and ended with their batch."""

from __future__ import annotations

from datetime import timedelta

import pytest

from matoolkit.store import phases as store
from matoolkit.store.database import GuardFailed
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.states import OPEN_EXECUTION, BatchStatus, ExecutionStatus, PhaseStatus, SkipReason
from tests.store.world import EARLIER, LATER, NOW, World, planned_row


def read(world: World, phase: int) -> store.Phase:
    with world.database.reading() as tx:
        return store.read(tx, [phase])[phase]


def test_phases_are_read_by_id_and_by_batch(world: World) -> None:
    first, second, third = world.batch(), world.batch(), world.batch()
    ids = [world.phase(first, "a"), world.phase(second, "b"), world.phase(first, "c")]
    with world.database.reading() as tx:
        assert [each.phase_name for each in store.read(tx, [ids[1], ids[0], 4711]).values()] == ["a", "b"]
        found = store.of_batches(tx, [first, third])
        assert (store.read(tx, []), store.of_batches(tx, [])) == ({}, {})
    assert {batch: [each.id for each in phases] for batch, phases in found.items()} == {
        first: [ids[0], ids[2]],
        third: [],
    }
    assert found[first][0].due_at == NOW


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (PhaseStatus.PENDING, None, False),
        (PhaseStatus.DISPATCHED, None, True),
        (PhaseStatus.COMPLETED, None, True),
        (PhaseStatus.FAILED, None, True),
        (PhaseStatus.SKIPPED, SkipReason.EMPTY, True),
        (PhaseStatus.SKIPPED, SkipReason.OVERDUE, False),
        (PhaseStatus.SUPERSEDED, None, False),
        (PhaseStatus.CANCELLED, None, False),
    ],
)
def test_who_joins_late_catches_up_on_what_the_others_ran(
    world: World, status: PhaseStatus, reason: SkipReason | None, *, expected: bool
) -> None:
    phase = world.phase(world.batch(), status=status, skip_reason=reason)
    assert read(world, phase).can_be_caught_up_on is expected


def test_a_chunk_writes_the_steps_of_its_members_and_of_nobody_else(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 6)
    world.members(world.batch(), 2)
    world.set(batch_members, members[1], status="removed")
    world.set(batch_members, members[2], catch_up_due=True)
    world.set(batch_members, members[3], generation=3)
    phase = world.phase(batch)
    planned = [planned_row(step_index=index, batch_id=batch, parent_id=phase, on_failure="undo") for index in (0, 1)]
    with world.database.transaction() as tx:
        store.write_chunk(tx, read(world, phase), planned, members[0], members[4])
    found = [(row["batch_member_id"], row["step_index"], row["generation"]) for row in world.rows(step_executions)]
    assert found == [(members[3], 0, 3), (members[3], 1, 3), (members[4], 0, 1), (members[4], 1, 1)]
    row = world.rows(step_executions)[0]
    assert (row["status"], row["job_out"], row["on_failure"], row["batch_id"]) == ("pending", False, "undo", batch)


def test_a_chunk_that_is_written_again_changes_nothing(world: World) -> None:
    batch = world.batch()
    members = world.members(batch)
    phase = world.phase(batch)
    world.steps(phase, members)
    world.set(step_executions, 1, status="succeeded")
    before = world.rows(step_executions)
    world.steps(phase, members)
    assert world.rows(step_executions) == before
    world.set(batch_members, members[0], generation=2)
    world.steps(phase, members)
    assert len(world.rows(step_executions)) == len(before) + 2


def test_catching_up_writes_the_missed_phases_of_one_member(world: World) -> None:
    batch, elsewhere = world.batch(), world.batch()
    member, other = world.members(batch, 2, late=True)
    first, second, foreign = world.phase(batch, "a"), world.phase(batch, "b"), world.phase(elsewhere, "c")
    planned = [
        planned_row(batch_id=batch, parent_id=first),
        planned_row(batch_id=batch, parent_id=second),
        planned_row(batch_id=elsewhere, parent_id=foreign),
    ]
    for _ in range(2):
        with world.database.transaction() as tx:
            store.write_catch_up(tx, member, planned)
            store.write_catch_up(tx, other, [])
    found = [(row["phase_execution_id"], row["batch_member_id"]) for row in world.rows(step_executions)]
    assert found == [(first, member), (second, member)]


def test_who_owes_no_catch_up_gets_none(world: World) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    phase = world.phase(batch)
    with world.database.transaction() as tx:
        store.write_catch_up(tx, member, [planned_row(batch_id=batch, parent_id=phase)])
    assert world.rows(step_executions) == []


def test_of_two_who_start_the_same_chunk_one_is_refused(world: World) -> None:
    phase = world.phase(world.batch(), expanded_at=None)
    of = read(world, phase)
    with world.database.transaction() as tx:
        store.expanded_to(tx, of, 0, 100, expanded_at=None, now=LATER)
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.expanded_to(tx, of, 0, 100, expanded_at=None, now=LATER)
    with world.database.transaction() as tx:
        store.expanded_to(tx, of, 100, 150, expanded_at=LATER, now=LATER)
    row = world.row(phase_executions, phase)
    assert (row["expanded_to_member_id"], row["expanded_at"], row["expansion_moved_at"]) == (150, LATER, LATER)
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.expanded_to(tx, of, 150, 200, expanded_at=None, now=LATER)


def closable(world: World, *phases: int) -> list[int]:
    with world.database.reading() as tx:
        found = [each.id for each in store.closable_among(tx, phases)]
        assert [each for each, _ in store.closable(tx, 10)] == found
        assert store.closable_among(tx, []) == []
    return found


def test_a_phase_may_close_when_no_step_is_open(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 2)
    phase = world.phase(batch)
    steps = world.steps(phase, members, 2, status=ExecutionStatus.SUCCEEDED)
    assert closable(world, phase) == [phase]
    for status in ExecutionStatus:
        world.set(step_executions, steps[members[1]][1], status=status)
        assert closable(world, phase) == ([] if status in OPEN_EXECUTION else [phase]), status


@pytest.mark.parametrize("values", [{"expanded_at": None}, {"status": "pending"}, {"status": "completed"}])
def test_a_phase_that_is_not_wholly_written_or_not_running_may_not(world: World, values: dict[str, object]) -> None:
    phase = world.phase(world.batch())
    assert closable(world, phase) == [phase]
    world.set(phase_executions, phase, **values)
    assert closable(world, phase) == []


def test_closing_is_from_dispatched_and_written_to_an_end(world: World) -> None:
    phase, other = world.phase(world.batch()), world.phase(world.batch(), expanded_at=None)
    of = read(world, phase)
    with world.database.transaction() as tx:
        store.close(tx, of, PhaseStatus.SKIPPED, SkipReason.EMPTY, LATER)
    row = world.row(phase_executions, phase)
    assert (row["status"], row["skip_reason"], row["completed_at"]) == ("skipped", "empty", LATER)
    for each in (of, read(world, other)):
        with pytest.raises(GuardFailed), world.database.transaction() as tx:
            store.close(tx, each, PhaseStatus.COMPLETED, None, LATER)


def test_the_outcome_is_who_went_through_and_who_failed(world: World) -> None:
    batch = world.batch()
    members = world.members(batch, 2)
    phase, other = world.phase(batch), world.phase(batch, "another")
    steps = world.steps(phase, members, 2)
    world.steps(other, members, 2, status=ExecutionStatus.SUCCEEDED)

    def outcome() -> tuple[bool, bool]:
        with world.database.reading() as tx:
            return store.outcome(tx, read(world, phase), last_step=1)

    assert outcome() == (False, False)
    world.set(step_executions, steps[members[0]][0], status="succeeded")
    assert outcome() == (False, False)
    world.set(step_executions, steps[members[0]][1], status="succeeded")
    assert outcome() == (True, False)
    world.set(batch_members, members[1], status="failed")
    assert outcome() == (True, True)


def test_what_is_open_ends_with_its_batch(world: World) -> None:
    batch, other = world.batch(), world.batch()
    ids = {status: world.phase(batch, status, status=status) for status in PhaseStatus}
    elsewhere = world.phase(other)
    before = world.column(phase_executions, "status")
    with world.database.transaction() as tx:
        store.end_open(tx, batch, PhaseStatus.SKIPPED, SkipReason.INIT_FAILED, LATER)
    changed = {ids[PhaseStatus.PENDING]: "skipped", ids[PhaseStatus.DISPATCHED]: "skipped"}
    assert world.column(phase_executions, "status") == before | changed
    assert world.row(phase_executions, ids[PhaseStatus.PENDING])["skip_reason"] == "init_failed"
    assert world.row(phase_executions, elsewhere)["status"] == "dispatched"


def test_phases_are_written_in_the_order_of_their_ids(world: World) -> None:
    batch = world.batch()
    first, second = world.phase(batch, "a", expanded_at=None), world.phase(batch, "b", expanded_at=None)
    world.phase(world.batch(), "c", expanded_at=None)

    def looks() -> tuple[bool, bool, int | None]:
        with world.database.reading() as tx:
            following = store.next_unexpanded(tx, batch)
            return (
                store.has_unexpanded_before(tx, read(world, first)),
                store.has_unexpanded_before(tx, read(world, second)),
                None if following is None else following.id,
            )

    assert looks() == (False, True, first)
    world.set(phase_executions, first, expanded_at=NOW)
    assert looks() == (False, False, second)
    world.set(phase_executions, second, status="pending")
    assert looks() == (False, False, None)


def test_a_phase_whose_chunks_stopped_coming_is_stalled(world: World) -> None:
    long_ago = EARLIER - timedelta(days=1)
    batch = world.batch()
    stopped = world.phase(batch, "a", expanded_at=None, dispatched_at=long_ago, expansion_moved_at=long_ago)
    never = world.phase(batch, "b", expanded_at=None, dispatched_at=long_ago)
    world.phase(batch, "c", expanded_at=None, dispatched_at=long_ago, expansion_moved_at=LATER)
    world.phase(batch, "d", expanded_at=None, dispatched_at=LATER)
    world.phase(batch, "e", expanded_at=NOW, dispatched_at=long_ago)
    ended = world.batch(status=BatchStatus.CANCELLED)
    world.phase(ended, "f", expanded_at=None, dispatched_at=long_ago)
    with world.database.reading() as tx:
        assert [each.id for each in store.stalled(tx, NOW)] == [stopped, never]
    assert world.row(batches, batch)["status"] == "active"


def test_members_steps_are_cancelled_where_they_are_open(world: World) -> None:
    batch = world.batch()
    first, second = world.members(batch, 2)
    phases = [world.phase(batch, "a"), world.phase(batch, "b")]
    steps = world.steps(phases[0], [first, second], len(ExecutionStatus))
    for step, status in zip(steps[first], ExecutionStatus, strict=True):
        world.set(step_executions, step, status=status, retry_after=NOW, poll_check_at=NOW)
    world.set(step_executions, steps[first][1], job_out=True, job_id="job")
    world.steps(phases[1], [first], 1, status=ExecutionStatus.SUCCEEDED)
    before = world.rows(step_executions)
    with world.database.transaction() as tx:
        assert store.cancel_steps(tx, [first, first], LATER) == {phases[0]}
        assert store.cancel_steps(tx, [first], LATER) == set()
        assert store.cancel_steps(tx, [], LATER) == set()
    for was, row in zip(before, world.rows(step_executions), strict=True):
        if was["batch_member_id"] == first and was["status"] in OPEN_EXECUTION:
            assert (row["status"], row["completed_at"]) == ("cancelled", LATER)
            assert (row["retry_after"], row["poll_check_at"]) == (None, None)
            assert (row["job_out"], row["job_id"]) == (was["job_out"], was["job_id"])  # until it reports
        else:
            assert row == was
