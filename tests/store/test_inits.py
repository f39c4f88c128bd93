"""A batch's init steps run one after another, for one version at a time."""

from __future__ import annotations

from matoolkit.messages import Kind
from matoolkit.store import inits as store
from matoolkit.store.schema import init_executions
from matoolkit.store.states import OPEN_EXECUTION, ExecutionStatus
from tests.store.world import LATER, NOW, World


def every_status(world: World, batch: int, version: int) -> dict[ExecutionStatus, int]:
    return {
        status: world.execution(
            Kind.INIT,
            batch,
            runbook_version=version,
            step_index=index,
            status=status,
            retry_after=NOW,
            poll_check_at=NOW,
            job_out=status == ExecutionStatus.DISPATCHED,
        )
        for index, status in enumerate(ExecutionStatus)
    }


def test_the_next_is_the_first_of_its_version_that_has_not_ended(world: World) -> None:
    batch, other = world.batch(), world.batch()
    world.execution(Kind.INIT, other)
    world.execution(Kind.INIT, batch, runbook_version=2)
    second = world.execution(Kind.INIT, batch, step_index=1, status="pending")
    first = world.execution(Kind.INIT, batch, step_index=0)
    for status in OPEN_EXECUTION:
        world.set(init_executions, first, status=status)
        with world.database.reading() as tx:
            found = store.next_open(tx, batch, 1)
        assert found is not None
        assert (found.id, found.kind, found.status) == (first, Kind.INIT, status)
    world.set(init_executions, first, status="succeeded")
    with world.database.reading() as tx:
        found = store.next_open(tx, batch, 1)
        assert found is not None
        assert found.id == second
        assert store.next_open(tx, batch, 3) is None


def test_what_is_left_of_a_version_is_not_sent(world: World) -> None:
    batch = world.batch()
    rows = every_status(world, batch, 1)
    every_status(world, batch, 2)
    before = world.column(init_executions, "status")
    with world.database.transaction() as tx:
        store.cancel_open(tx, batch, 1, LATER)
    changed = {rows[status]: "cancelled" for status in OPEN_EXECUTION}
    assert world.column(init_executions, "status") == before | changed
    row = world.row(init_executions, rows[ExecutionStatus.DISPATCHED])
    assert (row["completed_at"], row["retry_after"], row["poll_check_at"]) == (LATER, None, None)
    assert row["job_out"] is True  # until it reports


def test_nothing_of_a_cancelled_batch_is_sent_whatever_its_version(world: World) -> None:
    batch, other = world.batch(), world.batch()
    rows = [*every_status(world, batch, 1).items(), *every_status(world, batch, 2).items()]
    every_status(world, other, 1)
    before = world.column(init_executions, "status")
    with world.database.transaction() as tx:
        store.cancel_all(tx, batch, LATER)
    changed = {row: "cancelled" for status, row in rows if status in OPEN_EXECUTION}
    assert world.column(init_executions, "status") == before | changed
