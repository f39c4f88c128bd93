"""Leaving, and the guard before it: an empty answer of a source must not undo a migration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches import membership
from matoolkit.store import audit, holding
from matoolkit.store.locking import lock_members

if TYPE_CHECKING:
    from matoolkit.scheduler.differences import Differences
    from matoolkit.scheduler.working import Working
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction

BY_THE_SOURCE = "source"


def let_go(work: Working, batch: Batch, found: Differences) -> str | None:
    """Remove who is gone, or hold them back when they are too many to be believed; gives what is to be reported."""

    def unhold(tx: Transaction, some: list[int]) -> None:
        lock_members(tx, some)
        holding.unhold(tx, some)

    def hold(tx: Transaction, some: list[int]) -> None:
        lock_members(tx, some)
        holding.hold(tx, some, work.now)

    def remove(tx: Transaction, some: list[int]) -> None:
        removed = membership.remove_members(tx, work.announcer, batch, some, work.now, by=BY_THE_SOURCE)
        if removed:
            detail = {"members": removed}
            audit.record(
                tx, work.now, BY_THE_SOURCE, "members-removed", batch.runbook_name, batch_id=batch.id, detail=detail
            )

    work.in_chunks(found.found_again, unhold)
    work.in_chunks(found.newly_gone, hold if found.too_many else remove)
    held = len(found.gone) if found.too_many else len(found.missed)
    if not held:
        return None
    return (
        f"batch {batch.id}: {held} of {found.active} active members are missing from the source, and their removal is"
        " held until somebody releases it or they are there again"
    )
