"""Making a batch, with its members and phases: all at once, or in parts that nobody sees until the last is written."""

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
    batch = begin_batch(tx, published, start_time=start_time, now=now)
    fill_batch(tx, batch, members, now)
    finish_batch(tx, announcer, batch, published, runbook, start_time=start_time, now=now)
    return batch


def begin_batch(tx: Transaction, published: PublishedRunbook, *, start_time: datetime, now: datetime) -> int:
    """A batch that nobody sees yet."""
    return creation.create_batch(tx, published, name_folded=folded(published.name), start_time=start_time, now=now)


def fill_batch(tx: Transaction, batch: int, members: Sequence[Found], now: datetime) -> None:
    """Some of its members, where they are not there yet."""
    creation.add_members(tx, batch, [(key, folded(key), data) for key, data in members], now, late=False)


def finish_batch(
    tx: Transaction,
    announcer: Announcer,
    batch: int,
    published: PublishedRunbook,
    runbook: Runbook,
    *,
    start_time: datetime,
    now: datetime,
) -> None:
    """All its members are written: its phases, and what lets them fire. From now on others see it."""
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
                    member_count=batch_store.active_members(tx, batch),
                )
            ],
        )
    else:
        batch_store.activate(tx, batch)
