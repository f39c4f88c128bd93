"""`member-added`: somebody joined a batch that is under way, or came back to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.orchestrator import catch_up
from matoolkit.store import members as member_store
from matoolkit.store.locking import lock_members, share_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.messages import MemberAdded
    from matoolkit.orchestrator.work import Work


def handle(work: Work, events: Sequence[MemberAdded]) -> None:
    """Start each member on what it missed; a message about an earlier stay is out of date."""
    share_batches(work.tx, {each.batch_id for each in events})
    lock_members(work.tx, {each.batch_member_id for each in events})
    generations = {(each.batch_member_id, each.generation) for each in events}
    members = member_store.read(work.tx, {each.batch_member_id for each in events})
    catch_up.start(work, [each.id for each in members.values() if (each.id, each.generation) in generations])
