"""`member-removed`: somebody left. What is open is cancelled; the steps of leaving run once their hands are still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.orchestrator import sequences
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store.locking import lock_members, share_batches
from matoolkit.store.states import MemberStatus

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matoolkit.messages import MemberRemoved
    from matoolkit.orchestrator.work import Work
    from matoolkit.store.members import Member


def handle(work: Work, events: Sequence[MemberRemoved]) -> None:
    """Let each member go; a message about an earlier stay is out of date."""
    share_batches(work.tx, {each.batch_id for each in events})
    lock_members(work.tx, {each.batch_member_id for each in events})
    versions = {(each.batch_member_id, each.generation): each.runbook_version for each in events}
    members = member_store.read(work.tx, {each.batch_member_id for each in events})
    leaving = [each for each in members.values() if (each.id, each.generation) in versions]
    let_go(work, leaving, {each.id: versions[each.id, each.generation] for each in leaving})


def let_go(work: Work, members: Sequence[Member], versions: Mapping[int, int]) -> None:
    """Cancel what is open of members who have left, and begin their leaving; the caller holds their locks."""
    leaving = [each for each in members if each.status == MemberStatus.REMOVED and each.removal_due]
    if not leaving:
        return
    ids = [each.id for each in leaving]
    work.phases_to_close |= phase_store.cancel_steps(work.tx, ids, work.now)
    work.batches_to_close |= {each.batch_id for each in leaving}
    sequences.plan_removals(work, leaving, versions)
    member_store.removal_started(work.tx, leaving)
    sequences.advance_removals(work, ids)
