"""`phase-due`: a phase's time has come. Its members start in chunks, each in a transaction that sends the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.announcing import phase_due
from matoolkit.orchestrator import progression
from matoolkit.orchestrator.planning import planned
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store.locking import share_batches
from matoolkit.store.states import PhaseStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.messages import PhaseDue
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.phases import Phase


def handle(work: Work, events: Sequence[PhaseDue]) -> None:
    """Start the next chunk of members of each phase; a message that comes again finds the phase further on."""
    phases = phase_store.read(work.tx, {each.phase_execution_id for each in events})
    share_batches(work.tx, {each.batch_id for each in phases.values()})
    batches = batch_store.read(work.tx, {each.batch_id for each in phases.values()})
    started: set[int] = set()
    for event in sorted(events, key=lambda each: each.phase_execution_id):
        phase = phases.get(event.phase_execution_id)
        if phase is None or phase.id in started:
            continue
        if _may_start(work, phase, batches[phase.batch_id], event):
            started.add(phase.id)
            _start_chunk(work, phase, batches[phase.batch_id])


def announce(work: Work, phase: Phase, batch: Batch, after: int) -> PhaseDue:
    """The message that starts a phase, or its next chunk."""
    return phase_due(phase, batch, work.tracing.of_phase(phase.id, batch), after)


def _may_start(work: Work, phase: Phase, batch: Batch, event: PhaseDue) -> bool:
    return (
        batch.is_active
        and phase.status == PhaseStatus.DISPATCHED
        and phase.expanded_at is None
        and phase.expanded_to_member_id == event.after_member_id
        and not phase_store.has_unexpanded_before(work.tx, phase)
    )


def _start_chunk(work: Work, phase: Phase, batch: Batch) -> None:
    after, size = phase.expanded_to_member_id, work.settings.chunk_size
    # Who is to catch up starts by itself. They are locked too: where that is under way, it is seen when it is over.
    chunk = member_store.lock_chunk(work.tx, batch.id, after, size)
    joined = {member: each for member, each in chunk.items() if not each.catch_up_due}
    through = max(chunk, default=after)
    if chunk:
        defined = work.library.runbook(work.tx, batch.runbook_name, phase.runbook_version).phase(phase.phase_name)
        steps = () if defined is None else defined.steps
        rows = planned(steps, batch_id=batch.id, version=phase.runbook_version, parent_id=phase.id)
        phase_store.write_chunk(work.tx, phase, rows, after, through)
        progression.advance(work, joined, {batch.id: batch})
    if len(chunk) == size:
        phase_store.expanded_to(work.tx, phase, after, through, expanded_at=None, now=work.now)
        work.send_event(announce(work, phase, batch, through))
        return
    phase_store.expanded_to(work.tx, phase, after, through, expanded_at=work.now, now=work.now)
    work.phases_to_close.add(phase.id)
    work.batches_to_close.add(batch.id)
    following = phase_store.next_unexpanded(work.tx, batch.id)
    if following is not None:
        work.send_event(announce(work, following, batch, following.expanded_to_member_id))
