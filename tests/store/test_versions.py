"""A batch goes over to a newer version of its runbook."""

from __future__ import annotations

import pytest

from matoolkit.store import batches as batch_store
from matoolkit.store import versions as store
from matoolkit.store.database import GuardFailed
from matoolkit.store.schema import batches, phase_executions
from matoolkit.store.states import BatchStatus, PhaseStatus
from tests.store.world import LATER, World, publish


def test_pending_phases_are_superseded_and_no_others(world: World) -> None:
    batch, other = world.batch(), world.batch()
    ids = {status: world.phase(batch, status, status=status) for status in PhaseStatus}
    world.phase(other, status=PhaseStatus.PENDING)
    before = world.column(phase_executions, "status")
    with world.database.transaction() as tx:
        store.supersede_pending(tx, batch, LATER)
    assert world.column(phase_executions, "status") == before | {ids[PhaseStatus.PENDING]: "superseded"}
    assert world.row(phase_executions, ids[PhaseStatus.PENDING])["completed_at"] == LATER


def test_an_active_batch_runs_the_new_version(world: World) -> None:
    batch, other = world.batch(), world.batch()
    with world.database.transaction() as tx:
        newer = publish(tx)
        store.take_over(tx, batch, newer.id, 2)
        found = batch_store.read(tx, [batch, other])
    assert (found[batch].runbook_version, found[batch].rerunning_init_version) == (2, 2)
    assert (found[other].runbook_version, found[other].rerunning_init_version) == (1, None)


@pytest.mark.parametrize("status", [each for each in BatchStatus if each != BatchStatus.ACTIVE])
def test_a_batch_that_is_not_active_does_not(world: World, status: BatchStatus) -> None:
    batch = world.batch(status=status)
    with world.database.transaction() as tx:
        newer = publish(tx)
    with pytest.raises(GuardFailed), world.database.transaction() as tx:
        store.take_over(tx, batch, newer.id, None)
    assert world.row(batches, batch)["runbook_id"] == world.runbook.id
