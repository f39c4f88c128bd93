"""Rollbacks and removals: steps of one member, one after another, each tracked like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.messages import Kind
from matoolkit.orchestrator import dispatch
from matoolkit.orchestrator.planning import planned
from matoolkit.store import batches as batch_store
from matoolkit.store import members as member_store
from matoolkit.store import sequences as store
from matoolkit.store.executions import removals, rollbacks
from matoolkit.store.states import SequenceStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matoolkit.orchestrator.work import Work
    from matoolkit.store.batches import Batch
    from matoolkit.store.executions import Execution
    from matoolkit.store.members import Member


def start_rollbacks(
    work: Work, failed: Iterable[Execution], batches: Mapping[int, Batch], members: Mapping[int, Member]
) -> None:
    """Begin undoing failed steps that name a rollback."""
    by_parent: dict[str, list[int]] = {"failed_step": [], "failed_init": []}
    for execution in failed:
        if execution.on_failure is None:
            continue
        batch = batches[execution.batch_id]
        runbook = work.library.runbook(work.tx, batch.runbook_name, execution.runbook_version)
        parent = "failed_init" if execution.kind is Kind.INIT else "failed_step"
        rows = planned(
            runbook.rollbacks.get(execution.on_failure, ()),
            batch_id=execution.batch_id,
            version=execution.runbook_version,
            parent_id=execution.id,
            member=None if execution.member_id is None else members[execution.member_id],
            group=execution.on_failure,
        )
        rollbacks.plan(work.tx, rows, parent)
        by_parent[parent].append(execution.id)
    for parent, ids in by_parent.items():
        store.set_rollback_status(work.tx, parent, ids, SequenceStatus.RUNNING)
        advance_rollbacks(work, parent, ids)


def advance_rollbacks(work: Work, parent: str, ids: Sequence[int], *, overdue: bool = False) -> None:
    """Send the next step of each of these rollbacks; those with none left have succeeded."""
    if not ids:
        return
    upcoming = rollbacks.next_open(work.tx, ids, parent)
    over = [each for each in ids if each not in upcoming]
    store.set_rollback_status(work.tx, parent, over, SequenceStatus.SUCCEEDED)
    refused = _send_ready(work, Kind.ROLLBACK, upcoming.values(), overdue=overdue)
    fail_rollbacks(work, [execution for execution, _error in refused])
    if parent == "failed_step":
        _hands_are_still(work, store.members_of_failed_steps(work.tx, over))


def fail_rollbacks(work: Work, failed: Sequence[Execution]) -> None:
    """A step of a rollback failed for good: those behind it are not sent."""
    for parent, ids in parents_of(failed).items():
        store.cancel_rollbacks(work.tx, parent, ids, work.now)
        store.set_rollback_status(work.tx, parent, ids, SequenceStatus.FAILED)
    _hands_are_still(work, {each.member_id for each in failed if each.member_id is not None})


def parents_of(executions: Iterable[Execution]) -> dict[str, list[int]]:
    """What some rollback executions undo."""
    found: dict[str, list[int]] = {"failed_step": [], "failed_init": []}
    for execution in executions:
        if execution.failed_step_id is not None:
            found["failed_step"].append(execution.failed_step_id)
        elif execution.failed_init_id is not None:
            found["failed_init"].append(execution.failed_init_id)
    return {parent: sorted(set(ids)) for parent, ids in found.items() if ids}


def plan_removals(work: Work, leaving: Sequence[Member], versions: Mapping[int, int]) -> None:
    """Write the steps of members' leaving; `versions` says by which runbook version each of them leaves."""
    batches = batch_store.read(work.tx, {member.batch_id for member in leaving})
    rows = []
    for member in leaving:
        batch = batches[member.batch_id]
        version = versions.get(member.id) or batch.runbook_version
        steps = work.library.runbook(work.tx, batch.runbook_name, version).on_member_removed
        rows += planned(steps, batch_id=batch.id, version=version, member=member)
    removals.plan(work.tx, rows)


def advance_removals(work: Work, member_ids: Iterable[int], *, overdue: bool = False) -> None:
    """Send the next removal step of members whose hands are still; those who are through may come back."""
    wanted = sorted(set(member_ids))
    if not wanted:
        return
    upcoming = removals.next_open(work.tx, wanted, "member")
    busy = store.busy_members(work.tx, upcoming)
    ready = [execution for member, execution in upcoming.items() if member not in busy]
    refused = _send_ready(work, Kind.REMOVAL, ready, overdue=overdue)
    fail_removals(work, [execution for execution, _error in refused])
    work.members_to_return |= {each for each in wanted if each not in upcoming}


def fail_removals(work: Work, failed: Sequence[Execution]) -> None:
    """A step of a removal failed for good: those behind it are not sent, and the removal is over."""
    if failed:
        store.cancel_removals(work.tx, [(each.member_id, each.generation) for each in failed], work.now)
        advance_removals(work, {each.member_id for each in failed if each.member_id is not None})


def _hands_are_still(work: Work, member_ids: Iterable[int | None]) -> None:
    """Nothing runs for these members any more: what waited for that may begin."""
    advance_removals(work, [each for each in member_ids if each is not None])


def _send_ready(
    work: Work, kind: Kind, executions: Iterable[Execution], *, overdue: bool
) -> list[tuple[Execution, str]]:
    ready = [each for each in executions if work.can_be_sent(each, overdue=overdue)]
    if not ready:
        return []
    batches = batch_store.read(work.tx, {each.batch_id for each in ready})
    members = member_store.read(work.tx, {each.member_id for each in ready if each.member_id is not None})
    return dispatch.send(work, kind, ready, batches, members)
