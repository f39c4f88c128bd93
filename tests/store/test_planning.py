"""Executions that are to come are written once, whoever plans them again."""

from __future__ import annotations

from typing import Any

import pytest

from matoolkit.messages import Kind
from matoolkit.store.executions import inits, removals, rollbacks, steps
from matoolkit.store.schema import init_executions, removal_executions, rollback_executions
from tests.store.world import World, planned_row


def test_init_is_planned_once_for_each_version(world: World) -> None:
    batch = world.batch()
    for version in (1, 1, 2):
        with world.database.transaction() as tx:
            rows = [planned_row(batch_id=batch, runbook_version=version, step_index=index) for index in (0, 1)]
            inits.plan(tx, rows)
            inits.plan(tx, [])
    found = [(row["runbook_version"], row["step_index"]) for row in world.rows(init_executions)]
    assert found == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_removal_is_planned_once_for_each_stay(world: World) -> None:
    batch = world.batch()
    first, second = world.members(batch, 2)
    for member, generation in ((first, 1), (first, 1), (first, 2), (second, 1)):
        with world.database.transaction() as tx:
            removals.plan(tx, [planned_row(batch_id=batch, member_id=member, generation=generation)])
    found = [(row["batch_member_id"], row["generation"]) for row in world.rows(removal_executions)]
    assert found == [(first, 1), (first, 2), (second, 1)]


@pytest.mark.parametrize("parent", ["failed_step", "failed_init"])
def test_a_rollback_is_planned_once_for_each_failure(world: World, parent: str) -> None:
    batch = world.batch()
    (member,) = world.members(batch, 1)
    failures: list[int] = (
        world.steps(world.phase(batch), [member], 2)[member]
        if parent == "failed_step"
        else [world.execution(Kind.INIT, batch, step_index=index) for index in (0, 1)]
    )
    for failure in (failures[0], failures[0], failures[1]):
        rows = [
            planned_row(batch_id=batch, parent_id=failure, member_id=member, group_name="undo", step_index=index)
            for index in (0, 1)
        ]
        with world.database.transaction() as tx:
            rollbacks.plan(tx, rows, parent)
    column = {"failed_step": "step_execution_id", "failed_init": "init_execution_id"}[parent]
    found = [(row[column], row["step_index"]) for row in world.rows(rollback_executions)]
    assert found == [(failures[0], 0), (failures[0], 1), (failures[1], 0), (failures[1], 1)]
    assert {row["rollback_name"] for row in world.rows(rollback_executions)} == {"undo"}


def test_everything_that_was_planned_is_written(world: World) -> None:
    batch = world.batch()
    given: dict[str, Any] = {
        "batch_id": batch,
        "runbook_version": 7,
        "step_name": "Grant",
        "step_index": 3,
        "worker_id": "exchange",
        "function_name": "Set-{{What}}",
        "timeout_sec": 90,
        "on_failure": "undo",
        "is_poll_step": True,
        "poll_interval_sec": 15,
        "poll_timeout_sec": 600,
        "max_retries": 2,
        "retry_interval_sec": 30,
    }
    with world.database.transaction() as tx:
        inits.plan(tx, [planned_row(**given)])
    row = world.rows(init_executions)[0]
    assert {name: row[name] for name in given} == given
    assert (row["status"], row["job_out"], row["retry_count"], row["poll_count"]) == ("pending", False, 0, 0)


def test_steps_are_written_by_their_phase_only() -> None:
    assert steps.planning == {}
