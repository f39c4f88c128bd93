"""Making a batch, with its members and phases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.phases import planned_phases
from matoolkit.messages import BatchInit
from matoolkit.store import batches as batch_store
from matoolkit.store import creation
from matoolkit.store.runbooks import folded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.batches.membership import Found
    from matoolkit.runbooks import Runbook
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook


def create_batch(
    tx: Transaction,
    announcer: Announcer,
    published: PublishedRunbook,
    runbook: Runbook,
    *,
    start_time: datetime,
    members: Sequence[Found],
    now: datetime,
) -> int:
    """A batch with its members and phases, its init sent or its phases free to fire."""
    batch = creation.create_batch(tx, published, name_folded=folded(published.name), start_time=start_time, now=now)
    creation.add_members(tx, batch, [(key, folded(key), data) for key, data in members], now, late=False)
    creation.add_phases(tx, batch, published.version, planned_phases(runbook, start_time))
    creation.loaded(tx, batch, now)
    if runbook.init:
        batch_store.start_init(tx, batch, now)
        announcer.send(
            tx,
            [
                BatchInit(
                    runbook_name=published.name,
                    runbook_version=published.version,
                    batch_id=batch,
                    batch_start_time=start_time,
                    member_count=len(members),
                )
            ],
        )
    else:
        batch_store.activate(tx, batch)
    return batch
