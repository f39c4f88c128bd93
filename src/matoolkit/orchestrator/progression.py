"""What follows when a member's step ends: the next one, or the end of the member, of the phase, of the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.messages import Kind
from matoolkit.orchestrator import dispatch, sequences
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store.executions import steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.store.members import Member


def advance(
    work: Work, members: Mapping[int, Member], batches: Mapping[int, Batch], *, overdue: bool = False
) -> dict[int, Execution]:
    """Send the next step of each member who is free; the caller holds their locks.

    A member does one thing at a time and in order: the first of its open steps, by phase and then by place, is sent
    when it is pending, and everything waits behind it while it is out, polled, or to be tried again. Gives what
    each of them is at now, sent or waiting.
    """
    free = {each.id: each for each in members.values() if each.is_active and batches[each.batch_id].is_active}
    upcoming = steps.next_open(work.tx, free, "member")
    ready = [each for each in upcoming.values() if work.can_be_sent(each, overdue=overdue)]
    refused = dispatch.send(work, Kind.STEP, ready, batches, members)
    fail(work, [execution for execution, _error in refused], batches, members)
    _complete(work, [each for each in free.values() if each.id not in upcoming])
    return upcoming


def fail(work: Work, failed: Sequence[Execution], batches: Mapping[int, Batch], members: Mapping[int, Member]) -> None:
    """Steps failed for good: their members are taken out of the way of the others, and what is to be undone begins."""
    if not failed:
        return
    ids = [each.member_id for each in failed if each.member_id is not None]
    member_store.fail(work.tx, ids, work.now)
    work.phases_to_close |= phase_store.cancel_steps(work.tx, ids, work.now)
    work.phases_to_close |= {each.phase_id for each in failed if each.phase_id is not None}
    work.batches_to_close |= {each.batch_id for each in failed}
    sequences.start_rollbacks(work, failed, batches, members)


def _complete(work: Work, through: Sequence[Member]) -> None:
    """Members with nothing open: through, unless phases of their batch are still to come."""
    if not through:
        return
    work.batches_to_close |= {each.batch_id for each in through}
    waiting = batch_store.with_phases_to_come(work.tx, {each.batch_id for each in through})
    member_store.complete(work.tx, [each.id for each in through if each.batch_id not in waiting], work.now)
