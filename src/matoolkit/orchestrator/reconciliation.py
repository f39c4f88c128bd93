"""What guards and messages may leave undone, found on a timer and done: each kind in a transaction of its own.

A phase nobody closed, a member who is free and has work, a removal nobody handled, a job that will never report. In a
healthy system this finds nothing.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from matoolkit.messages import Kind
from matoolkit.orchestrator import batch_init, catch_up, lost_jobs, member_removed, phase_due, progression, sequences
from matoolkit.orchestrator.planning import planned
from matoolkit.orchestrator.work import Closing
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import sequences as sequence_store
from matoolkit.store import stuck, winding_up
from matoolkit.store.executions import inits
from matoolkit.store.locking import lock_batches, lock_members, share_batches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matoolkit.orchestrator.work import Work
    from matoolkit.store.members import Member

_SIZE = 500
_WINDOW = 20_000
_LOST_AFTER = timedelta(hours=1)
"""How long past its end of life a job that was neither run nor given back is waited for."""


class Reconciliation:
    """Goes round; keeps only how far its look at the members has got."""

    def __init__(self) -> None:
        self._looked_at = 0

    @property
    def parts(self) -> tuple[Callable[[Work], Closing | None], ...]:
        """Each is to be run in a transaction; some know of phases and batches that may be over."""
        return (
            _removals_owed,
            _catch_up_owed,
            _stalled_phases,
            _stalled_inits,
            self._idle_members,
            _waiting_sequences,
            _jobs_lost,
            _winding_up,
            _closing,
        )

    def _idle_members(self, work: Work) -> None:
        """Active members with a step to do and nothing under way."""
        before = work.now - work.settings.stall_after
        after = self._looked_at
        idle, self._looked_at = stuck.idle_members(work.tx, after, before, _WINDOW)
        if after and not self._looked_at:
            # There was nobody behind those who were looked at last time: from the beginning again.
            idle, self._looked_at = stuck.idle_members(work.tx, 0, before, _WINDOW)
        if len(idle) > _SIZE:
            idle = idle[:_SIZE]
            self._looked_at = idle[-1][0]
        if idle:
            share_batches(work.tx, {batch for _member, batch in idle})
            lock_members(work.tx, [member for member, _batch in idle])
            members = member_store.read(work.tx, [member for member, _batch in idle])
            batches = batch_store.read(work.tx, {each.batch_id for each in members.values()})
            kept = {each.id: each for each in _of_readable(work, list(members.values()))}
            progression.advance(work, kept, batches, overdue=True)


def _removals_owed(work: Work) -> None:
    """Members who left and whose leaving nobody has handled."""
    owed = _of_readable(work, member_store.owed_removal(work.tx, _SIZE))
    if owed:
        share_batches(work.tx, {each.batch_id for each in owed})
        lock_members(work.tx, [each.id for each in owed])
        members = member_store.read(work.tx, [each.id for each in owed])
        member_removed.let_go(work, list(members.values()), {})


def _catch_up_owed(work: Work) -> None:
    """Members who joined late, or came back, and have not been started."""
    owed = _of_readable(work, member_store.owed_catch_up(work.tx, _SIZE))
    if owed:
        share_batches(work.tx, {each.batch_id for each in owed})
        lock_members(work.tx, [each.id for each in owed])
        catch_up.start(work, [each.id for each in owed])


def _stalled_phases(work: Work) -> None:
    """Phases whose next chunk nobody has been told to start."""
    for phase in phase_store.stalled(work.tx, work.now - work.settings.stall_after):
        if not phase_store.has_unexpanded_before(work.tx, phase):
            batch = batch_store.read(work.tx, [phase.batch_id])[phase.batch_id]
            work.send_event(phase_due.announce(work, phase, batch, phase.expanded_to_member_id))


def _stalled_inits(work: Work) -> None:
    """Batches whose init has steps left and none under way."""
    waiting = stuck.waiting_for_init(work.tx)
    lock_batches(work.tx, waiting)
    for batch in batch_store.read(work.tx, waiting).values():
        version = batch.rerunning_init_version if batch.is_active else batch.runbook_version
        if version is not None and work.library.can_read(work.tx, batch.runbook_name, version):
            steps = work.library.runbook(work.tx, batch.runbook_name, version).init
            inits.plan(work.tx, planned(steps, batch_id=batch.id, version=version))
            batch_init.advance(work, batch, version, overdue=True)


def _waiting_sequences(work: Work) -> None:
    """Rollbacks and removals with a step left and none under way."""
    before = work.now - work.settings.stall_after
    found = {
        parent: sequence_store.waiting_rollbacks(work.tx, parent, before, _SIZE)
        for parent in ("failed_step", "failed_init")
    }
    leaving = sequence_store.waiting_removals(work.tx, before, _SIZE)
    members = {member for waiting in found.values() for _parent, member in waiting if member is not None}
    lock_members(work.tx, members | set(leaving))
    for parent, waiting in found.items():
        sequences.advance_rollbacks(work, parent, sorted({each for each, _member in waiting}), overdue=True)
    sequences.advance_removals(work, leaving, overdue=True)


def _jobs_lost(work: Work) -> None:
    """Jobs that were neither run nor given back in all their time."""
    before = work.now - _LOST_AFTER
    for kind in Kind:
        lost_jobs.give_up(work, stuck.lost_jobs(work.tx, kind, before, _SIZE))


def _winding_up(work: Work) -> None:
    """Batches that ended before their time."""
    for batch, status, by in winding_up.winding_up(work.tx):
        lock_batches(work.tx, [batch])
        winding_up.wind_up(work.tx, batch, status, by, now=work.now, size=_SIZE * 4)


def _closing(work: Work) -> Closing:
    """Phases and batches that are over and open."""
    closable = phase_store.closable(work.tx, _SIZE)
    return Closing(
        frozenset(phase for phase, _batch in closable),
        frozenset(batch for _phase, batch in closable) | frozenset(batch_store.done(work.tx, _SIZE)),
    )


def _of_readable(work: Work, members: Sequence[Member]) -> list[Member]:
    """Those whose batch runs a runbook that can be read: one that cannot must not hold up the others."""
    batches = batch_store.read(work.tx, {each.batch_id for each in members})
    readable = {
        each.id for each in batches.values() if work.library.can_read(work.tx, each.runbook_name, each.runbook_version)
    }
    return [each for each in members if each.batch_id in readable]
