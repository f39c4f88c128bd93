"""Taking batches that are under way over to a new version of their runbook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.phases import transition
from matoolkit.batches.places import taken
from matoolkit.messages import BatchInit
from matoolkit.store import batches as batch_store
from matoolkit.store import creation
from matoolkit.store import inits as init_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import runbooks as runbook_store
from matoolkit.store import versions as version_store
from matoolkit.store.locking import lock_batches

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.runbooks import Runbook
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook


def change_version(
    tx: Transaction,
    announcer: Announcer,
    batch_id: int,
    *,
    published: PublishedRunbook,
    runbook: Runbook,
    now: datetime,
) -> bool:
    """Take an active batch over to the active version of its runbook; polls and retries of the old one go on."""
    lock_batches(tx, [batch_id])
    batch = batch_store.read(tx, [batch_id])[batch_id]
    if not batch.is_active or batch.is_manual or batch.runbook_version >= published.version:
        return False
    existing = phase_store.of_batches(tx, [batch_id])[batch_id]
    change = transition(runbook, existing, batch.start_time, now, ignore_overdue=published.overdue_behavior == "ignore")
    reruns = published.rerun_init and bool(runbook.init)
    version_store.supersede_pending(tx, batch_id, now)
    # An init that is being run again for the version that is left, and whose phases will never run, is not needed.
    init_store.cancel_all(tx, batch_id, now)
    creation.add_phases(tx, batch_id, published.version, change.added)
    version_store.take_over(tx, batch_id, published.id, published.version if reruns else None)
    if published.overdue_behavior == "ignore":
        runbook_store.ignore_overdue_applied(tx, published.id)
    if change.any_to_run:
        # Who was through with the old version takes part in what the new one adds, unless they have a place elsewhere.
        through = member_store.completed(tx, batch_id)
        elsewhere = taken(tx, published.name, through.keys(), batch_id)
        member_store.reactivate_completed(tx, [each for key, each in through.items() if key not in elsewhere])
    if reruns:
        announcer.send(
            tx,
            [
                BatchInit(
                    runbook_name=published.name,
                    runbook_version=published.version,
                    batch_id=batch_id,
                    batch_start_time=batch.start_time,
                    member_count=batch_store.active_members(tx, batch_id),
                )
            ],
        )
    return True
