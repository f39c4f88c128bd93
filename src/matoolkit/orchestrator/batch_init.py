"""`batch-init`: a batch runs its init steps, one at a time, before any of its phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.messages import BatchInit, Kind
from matoolkit.orchestrator import dispatch, sequences
from matoolkit.orchestrator.decisions import still_wanted
from matoolkit.orchestrator.planning import planned
from matoolkit.store import batches as batch_store
from matoolkit.store import inits as init_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import runbooks as runbook_store
from matoolkit.store.executions import inits
from matoolkit.store.locking import lock_batches
from matoolkit.store.states import BatchStatus, PhaseStatus, SkipReason
from matoolkit.telemetry.metrics import BATCHES_ENDED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution

_BEFORE_PHASES = (BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED)


def handle(work: Work, events: Sequence[BatchInit]) -> None:
    """Write the init steps of each batch, where they are not written, and send the first."""
    lock_batches(work.tx, {each.batch_id for each in events})
    batches = batch_store.read(work.tx, {each.batch_id for each in events})
    for event in events:
        batch = batches.get(event.batch_id)
        if batch is None or batch.loaded_at is None or not _expected(batch, event.runbook_version):
            continue
        runbook = work.library.runbook(work.tx, batch.runbook_name, event.runbook_version)
        inits.plan(work.tx, planned(runbook.init, batch_id=batch.id, version=event.runbook_version))
        batch_store.start_init(work.tx, batch.id, work.now)
        advance(work, batch, event.runbook_version)


def advance(work: Work, batch: Batch, version: int, *, overdue: bool = False) -> None:
    """Send the batch's next init step; with none left, let its phases go. The caller holds the batch's lock."""
    upcoming = init_store.next_open(work.tx, batch.id, version)
    if upcoming is None:
        if batch.rerunning_init_version == version:
            batch_store.init_rerun_over(work.tx, batch.id, version)
        else:
            batch_store.activate(work.tx, batch.id)
            work.tx.execute(member_store.CLEAR_CATCH_UP, batch=batch.id)
        work.batches_to_close.add(batch.id)
        return
    if not work.can_be_sent(upcoming, overdue=overdue):
        return
    refused = dispatch.send(work, Kind.INIT, [upcoming], {batch.id: batch}, {})
    for execution, error in refused:
        fail(work, batch, execution, error)


def fail(work: Work, batch: Batch, execution: Execution, error: str) -> None:
    """An init step failed for good: the batch has, unless it is the rerun that a new version asked for."""
    if not still_wanted(execution, batch, None):
        return
    init_store.cancel_open(work.tx, batch.id, execution.runbook_version, work.now)
    sequences.start_rollbacks(work, [execution], {batch.id: batch}, {})
    if batch.rerunning_init_version == execution.runbook_version:
        batch_store.init_rerun_over(work.tx, batch.id, execution.runbook_version)
        message = f"init step '{execution.step_name}' failed when it was run again for batch {batch.id}: {error}"
        runbook_store.report_error(work.tx, batch.runbook_name, execution.runbook_version, message, work.now)
        work.batches_to_close.add(batch.id)
        return
    if batch_store.break_off(work.tx, batch.id, BatchStatus.FAILED, work.now):
        phase_store.end_open(work.tx, batch.id, PhaseStatus.SKIPPED, SkipReason.INIT_FAILED, work.now)
        work.count(BATCHES_ENDED, 1, status=BatchStatus.FAILED)


def _expected(batch: Batch, version: int) -> bool:
    return batch.status in _BEFORE_PHASES or (batch.is_active and batch.rerunning_init_version == version)
