"""The end of phases and batches, in a transaction of its own after the one that may have brought it about.

Two orchestrators may end the last two members of a phase at the same time, each without seeing the other's commit.
Whoever commits last looks again here, sees both, and closes under the batch's lock.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from matoolkit.orchestrator.decisions import batch_outcome, phase_outcome
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store.locking import lock_batches
from matoolkit.telemetry import SILENT
from matoolkit.telemetry.metrics import BATCHES_ENDED, PHASES_ENDED

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from matoolkit.orchestrator.library import Library
    from matoolkit.orchestrator.work import Closing
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.telemetry import Telemetry


def close(tx: Transaction, library: Library, closing: Closing, now: datetime, telemetry: Telemetry = SILENT) -> None:
    """Close what is over among the phases and batches that may be."""
    maybe = phase_store.closable_among(tx, closing.phases)
    batches = {each.batch_id for each in maybe} | {each for each, *_ in batch_store.done_among(tx, closing.batches)}
    if not batches:
        return
    lock_batches(tx, batches)
    for phase in phase_store.closable_among(tx, closing.phases):
        if phase.batch_id not in batches:
            continue  # over since the first look: whoever ended its last step looks after that
        last = _last_step(tx, library, phase)
        if last is None:
            continue
        any_through, any_failed = phase_store.outcome(tx, phase, last)
        status, reason = phase_outcome(any_through=any_through, any_failed=any_failed)
        phase_store.close(tx, phase, status, reason, now)
        if telemetry.is_on:
            tx.after_commit(partial(_tell, telemetry, phase, status, batch_store.read(tx, [phase.batch_id])))
    for batch, any_completed, any_failed in batch_store.done_among(tx, batches):
        outcome = batch_outcome(any_completed=any_completed, any_failed=any_failed)
        if batch_store.complete(tx, batch, outcome, now):
            tx.execute(member_store.COMPLETE_BATCH, batch=batch, now=now)
            if telemetry.is_on:
                tx.after_commit(partial(telemetry.count, BATCHES_ENDED, 1, status=outcome))


def _tell(telemetry: Telemetry, phase: phase_store.Phase, status: str, batches: Mapping[int, Batch]) -> None:
    """The end of a phase, counted and at the end of its trace."""
    batch = batches[phase.batch_id]
    telemetry.count(PHASES_ENDED, 1, status=status)
    labels: dict[str, str | int] = {
        "BatchId": batch.id,
        "PhaseExecutionId": phase.id,
        "PhaseName": phase.phase_name,
        "Status": status,
    }
    telemetry.span(f"phase {phase.phase_name} has ended", telemetry.trace_of(batch.origin(phase.id)), labels).end()


def _last_step(tx: Transaction, library: Library, phase: phase_store.Phase) -> int | None:
    batch = batch_store.read(tx, [phase.batch_id])[phase.batch_id]
    if not library.can_read(tx, batch.runbook_name, phase.runbook_version):
        return None
    defined = library.runbook(tx, batch.runbook_name, phase.runbook_version).phase(phase.phase_name)
    return -1 if defined is None else len(defined.steps) - 1
