"""What things wait for, in words for an operator: a time, a job, a worker that is silent, init, a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from matoolkit.store import member_lists
from matoolkit.store.states import (
    OPEN_EXECUTION,
    BatchStatus,
    ExecutionStatus,
    MemberStatus,
    PhaseStatus,
    SequenceStatus,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.api.queues import Queue, Queues
    from matoolkit.store.batch_lists import BatchItem, PhaseItem
    from matoolkit.store.database import Transaction
    from matoolkit.store.member_lists import MemberItem, StepItem


@dataclass
class Waiting:
    """Finds out, for one batch, in a few queries whatever the number of members."""

    tx: Transaction
    batch: BatchItem
    phases: Sequence[PhaseItem]
    queues: Queues | None
    now: datetime
    _queues: dict[str, Queue | None] = field(default_factory=dict)
    _init: str | None = None

    def of_batch(self) -> str | None:
        """What the batch as a whole waits for, apart from members who are under way."""
        batch = self.batch
        if batch.loaded_at is None:
            return "its members to be written"
        if batch.status == BatchStatus.DETECTED:
            return "an operator, to advance it" if batch.is_manual else "init"
        if batch.status == BatchStatus.INIT_DISPATCHED or (
            batch.status == BatchStatus.ACTIVE and batch.rerunning_init_version is not None
        ):
            return self._of_init()
        if batch.status != BatchStatus.ACTIVE or self._running():
            return None
        pending = self._pending()
        if pending is None:
            return None
        if batch.is_manual:
            return f"an operator, to advance it to phase '{pending.phase_name}'"
        return f"phase '{pending.phase_name}', due {at(pending.due_at)}"

    def of_phases(self) -> dict[int, str]:
        """What phases wait for that have not ended."""
        found: dict[int, str] = {}
        first = self._pending()
        for phase in self.phases:
            if phase.status == PhaseStatus.DISPATCHED:
                found[phase.id] = (
                    "its members to be started" if phase.expanded_at is None else "its members to end their steps"
                )
            elif phase.status == PhaseStatus.PENDING and self.batch.status in _BEFORE_PHASES:
                found[phase.id] = self.of_batch() or "init"
            elif phase.status == PhaseStatus.PENDING and not self.batch.is_manual:
                found[phase.id] = f"its time, {at(phase.due_at)}"
            elif phase.status == PhaseStatus.PENDING:
                before = "an operator, to advance the batch"
                found[phase.id] = before if phase is first and not self._running() else "the phases before it"
        return found

    def of_members(self, members: Sequence[MemberItem]) -> dict[int, str]:
        """What members wait for."""
        active = [each.id for each in members if each.status == MemberStatus.ACTIVE]
        where = member_lists.first_open_steps(self.tx, active)
        others = [each.id for each in members if each.status != MemberStatus.COMPLETED]
        rollbacks, removals = member_lists.open_sequences(self.tx, others)
        found: dict[int, str] = {}
        for member in members:
            text = None
            if member.id in rollbacks and member.status != MemberStatus.ACTIVE:
                text = f"its rollback, at step '{rollbacks[member.id]}'"
            elif member.status == MemberStatus.REMOVED and member.removal_due:
                text = "its leaving to begin"
            elif member.id in removals:
                returning = "the steps of its last leaving to end" if member.status == MemberStatus.ACTIVE else None
                text = returning or f"the steps of its leaving, at '{removals[member.id]}'"
            elif member.status == MemberStatus.ACTIVE:
                text = self._of_active(member, where.get(member.id))
            if text is not None:
                found[member.id] = text
        return found

    def of_steps(self, steps: Sequence[StepItem]) -> dict[int, str]:
        """What steps wait for."""
        pending = {each.batch_member_id for each in steps if each.status == ExecutionStatus.PENDING}
        first = member_lists.first_open_steps(self.tx, sorted(each for each in pending if each is not None))
        found: dict[int, str] = {}
        for step in steps:
            before = first.get(step.batch_member_id or 0)
            if step.rollback_status == SequenceStatus.RUNNING:
                found[step.id] = f"its rollback '{step.on_failure}'"
            elif step.status not in OPEN_EXECUTION:
                continue
            elif step.status == ExecutionStatus.PENDING and before is not None and before.id != step.id:
                found[step.id] = f"step '{before.step_name}' before it"
            else:
                found[step.id] = self._of_step(step)
        return found

    def of_init_steps(self, steps: Sequence[StepItem]) -> dict[int, str]:
        """What init steps wait for: each for the one before it."""
        found: dict[int, str] = {}
        before: StepItem | None = None
        for step in steps:
            if step.rollback_status == SequenceStatus.RUNNING:
                found[step.id] = f"its rollback '{step.on_failure}'"
            elif step.status in OPEN_EXECUTION:
                is_first = before is None or before.runbook_version != step.runbook_version
                found[step.id] = self._of_step(step) if is_first or before is None else f"step '{before.step_name}'"
                before = step
        return found

    def of_sequences(self, executions: Sequence[tuple[int | None, StepItem]]) -> dict[int, str]:
        """What steps of rollbacks or leavings wait for, each with its sequence: for the one before it in there."""
        found: dict[int, str] = {}
        before: dict[int | None, str] = {}
        for sequence, step in executions:
            if step.status in OPEN_EXECUTION:
                own = self._of_step(step) if sequence not in before else f"step '{before[sequence]}' before it"
                found[step.id] = own
                before[sequence] = step.step_name
        return found

    def _of_active(self, member: MemberItem, step: StepItem | None) -> str | None:
        if member.removal_held_at is not None:
            return "an operator: it is missing from the source, and its removal is held"
        if self.batch.status in _BEFORE_PHASES:
            return self.of_batch()
        if self.batch.status != BatchStatus.ACTIVE:
            return "the end of its batch to be written"
        if step is not None:
            return f"step '{step.step_name}': {self._of_step(step)}"
        if member.catch_up_due:
            return "the phases that began without it to be started"
        if any(each.status == PhaseStatus.DISPATCHED and each.expanded_at is None for each in self.phases):
            return "its phase to reach it"
        return self.of_batch() or self._of_next_phase()

    def _of_next_phase(self) -> str | None:
        pending = self._pending()
        if pending is None:
            return None
        return f"phase '{pending.phase_name}'" + (f", due {at(pending.due_at)}" if pending.due_at else "")

    def _of_step(self, step: StepItem) -> str:
        if step.job_out:
            return self._of_worker(step)
        if step.status == ExecutionStatus.POLLING:
            return f"the next question about it, at {at(step.poll_check_at)}"
        if step.retry_after is not None:
            return f"another try, at {at(step.retry_after)}"
        if self.queues is not None and self._queue(step.worker_id) is None:
            return f"worker '{step.worker_id}', which was never started here"
        return "its job to be sent"

    def _of_worker(self, step: StepItem) -> str:
        named = f"worker '{step.worker_id}'"
        since = f"job {step.job_id}, sent {at(step.dispatched_at)}"
        queue = self._queue(step.worker_id)
        if queue is None:
            return f"{named} ({since})"
        if queue.is_silent(self.now):
            return f"{named}, which is silent: {queue.waiting} jobs wait, the first since {at(queue.oldest)} ({since})"
        return f"{named}, with {queue.waiting} jobs waiting and {queue.running} running ({since})"

    def _queue(self, worker_id: str) -> Queue | None:
        """What lies before a worker, looked at once for each."""
        if self.queues is not None and worker_id not in self._queues:
            self._queues[worker_id] = self.queues.of(self.tx, worker_id)
        return self._queues.get(worker_id)

    def _of_init(self) -> str:
        if self._init is None:
            steps = [each for each in member_lists.init_steps(self.tx, self.batch.id) if each.status in OPEN_EXECUTION]
            self._init = f"init, at step '{steps[0].step_name}': {self._of_step(steps[0])}" if steps else "init"
        return self._init

    def _pending(self) -> PhaseItem | None:
        return next((each for each in self.phases if each.status == PhaseStatus.PENDING), None)

    def _running(self) -> bool:
        return any(each.status == PhaseStatus.DISPATCHED for each in self.phases)


_BEFORE_PHASES = (BatchStatus.DETECTED, BatchStatus.INIT_DISPATCHED)


def at(moment: datetime | None) -> str:
    """A moment as texts of the API name it."""
    return "a time not known" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
