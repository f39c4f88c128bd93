"""Rollbacks and removals as wholes."""

from __future__ import annotations

from typing import Any

import pytest

from matoolkit.messages import Kind
from matoolkit.store import sequences as store
from matoolkit.store.schema import init_executions, removal_executions, rollback_executions, step_executions
from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus, SequenceStatus
from tests.store.world import EARLIER, LATER, NOW, World


@pytest.fixture
def place(world: World) -> dict[str, Any]:
    batch = world.batch()
    members = world.members(batch, 3)
    steps = world.steps(world.phase(batch), members, 1)
    return {
        "batch": batch,
        "members": members,
        "steps": [steps[each][0] for each in members],
        "inits": [world.execution(Kind.INIT, batch, step_index=index) for index in range(3)],
    }


def rollback(world: World, place: dict[str, Any], number: int = 0, parent: str = "failed_step", **values: Any) -> int:
    own = (
        {"step_execution_id": place["steps"][number], "batch_member_id": place["members"][number]}
        if parent == "failed_step"
        else {"init_execution_id": place["inits"][number]}
    )
    return world.execution(Kind.ROLLBACK, place["batch"], rollback_name="undo", **own, **values)


def removal(world: World, place: dict[str, Any], number: int = 0, **values: Any) -> int:
    own = {"batch_member_id": place["members"][number], "generation": 1}
    return world.execution(Kind.REMOVAL, place["batch"], **{**own, **values})


@pytest.mark.parametrize(
    ("parent", "table", "owners"),
    [("failed_step", step_executions, "steps"), ("failed_init", init_executions, "inits")],
)
def test_how_a_rollback_goes_is_noted_where_it_failed(
    world: World, place: dict[str, Any], parent: str, table: Any, owners: str
) -> None:
    first, second, third = place[owners]
    with world.database.transaction() as tx:
        store.set_rollback_status(tx, parent, [first, second], SequenceStatus.RUNNING)
        store.set_rollback_status(tx, parent, [second], SequenceStatus.FAILED)
        store.set_rollback_status(tx, parent, [], SequenceStatus.FAILED)
    assert world.column(table, "rollback_status") == {first: "running", second: "failed", third: None}


@pytest.mark.parametrize("parent", ["failed_step", "failed_init"])
def test_what_is_left_of_a_rollback_is_not_sent(world: World, place: dict[str, Any], parent: str) -> None:
    rows = {
        status: rollback(world, place, 0, parent, step_index=index, status=status, retry_after=NOW)
        for index, status in enumerate(ExecutionStatus)
    }
    other = rollback(world, place, 1, parent)
    before = world.column(rollback_executions, "status")
    owner = place["steps" if parent == "failed_step" else "inits"][0]
    with world.database.transaction() as tx:
        store.cancel_rollbacks(tx, parent, [owner], LATER)
        store.cancel_rollbacks(tx, parent, [], LATER)
    changed = rows[ExecutionStatus.PENDING]
    assert world.column(rollback_executions, "status") == before | {changed: "cancelled"}
    assert world.row(rollback_executions, changed)["completed_at"] == LATER
    assert world.row(rollback_executions, other)["status"] == "pending"


def test_what_is_left_of_one_stay_s_removal_is_not_sent(world: World, place: dict[str, Any]) -> None:
    waiting, out = removal(world, place), removal(world, place, step_index=1, status="dispatched")
    next_stay = removal(world, place, generation=2)
    with world.database.transaction() as tx:
        store.cancel_removals(tx, [(place["members"][0], 1)], LATER)
        store.cancel_removals(tx, [], LATER)
    expected = {waiting: "cancelled", out: "dispatched", next_stay: "pending"}
    assert world.column(removal_executions, "status") == expected


def test_whose_steps_failed(world: World, place: dict[str, Any]) -> None:
    with world.database.reading() as tx:
        found = store.members_of_failed_steps(tx, [place["steps"][0], place["steps"][2], 4711])
        assert store.members_of_failed_steps(tx, []) == set()
    assert found == {place["members"][0], place["members"][2]}


def test_hands_are_still_when_no_job_is_out_and_no_rollback_runs(world: World, place: dict[str, Any]) -> None:
    first, second, third = place["members"]

    def busy(*, removals_too: bool = False) -> set[int]:
        with world.database.reading() as tx:
            assert store.busy_members(tx, [], removals_too=removals_too) == set()
            return store.busy_members(tx, [first, second, third], removals_too=removals_too)

    assert busy() == busy(removals_too=True) == set()
    world.set(step_executions, place["steps"][0], status="cancelled", job_out=True)
    undoing, leaving = rollback(world, place, 1), removal(world, place, 2)
    assert busy() == {first, second}
    assert busy(removals_too=True) == {first, second, third}
    world.set(step_executions, place["steps"][0], job_out=False)
    assert busy() == {second}
    for status in ExecutionStatus:
        world.set(rollback_executions, undoing, status=status)
        world.set(removal_executions, leaving, status=status)
        open_now = status in OPEN_EXECUTION
        assert busy() == ({second} if open_now else set())
        assert busy(removals_too=True) == ({second, third} if open_now else set())


@pytest.mark.parametrize("parent", ["failed_step", "failed_init"])
def test_rollbacks_that_could_go_on(world: World, place: dict[str, Any], parent: str) -> None:
    rollback(world, place, 2, parent)
    rollback(world, place, 0, parent, retry_after=EARLIER)
    rollback(world, place, 0, parent, step_index=1)  # the same failure again: listed once
    rollback(world, place, 1, parent, retry_after=LATER)
    rollback(world, place, 1, parent, step_index=1, status="dispatched")
    owners = place["steps" if parent == "failed_step" else "inits"]
    members = place["members"] if parent == "failed_step" else [None] * 3
    other = "failed_init" if parent == "failed_step" else "failed_step"
    with world.database.reading() as tx:
        found = store.waiting_rollbacks(tx, parent, NOW, 10)
        assert store.waiting_rollbacks(tx, parent, NOW, 1) == found[:1]
        assert store.waiting_rollbacks(tx, other, NOW, 10) == []
    assert found == [(owners[0], members[0]), (owners[2], members[2])]


def test_removals_that_could_go_on(world: World, place: dict[str, Any]) -> None:
    removal(world, place, 2)
    removal(world, place, 0, retry_after=EARLIER)
    removal(world, place, 0, step_index=1)
    removal(world, place, 1, retry_after=LATER)
    first, _, third = place["members"]
    with world.database.reading() as tx:
        assert store.waiting_removals(tx, NOW, 10) == [first, third]
        assert store.waiting_removals(tx, NOW, 1) == [first]
