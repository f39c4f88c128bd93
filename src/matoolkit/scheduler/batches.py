"""Batches as the scheduler makes and changes them: new ones, members who come and go, new runbook versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.messages import BatchInit, MemberAdded, MemberRemoved
from matoolkit.scheduler.phases import planned_phases, transition
from matoolkit.store import batches as batch_store
from matoolkit.store import creation
from matoolkit.store import inits as init_store
from matoolkit.store import members as member_store
from matoolkit.store import phases as phase_store
from matoolkit.store import versions as version_store
from matoolkit.store.locking import lock_batches, lock_members, share_batches
from matoolkit.store.runbooks import folded
from matoolkit.store.states import OPEN_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from matoolkit.runbooks import Runbook
    from matoolkit.scheduler.due import Announcer
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook

Found = tuple[str, str]
"""A member as a source gives it: key and data."""


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


def add_members(tx: Transaction, announcer: Announcer, batch: Batch, members: Sequence[Found], now: datetime) -> None:
    """Members who joined a batch that is under way."""
    if not _shared_and_open(tx, batch):
        return
    found = [(key, folded(key), data) for key, data in members]
    creation.add_members(tx, batch.id, found, now, late=True)
    joined = creation.late_members(tx, batch.id, found)
    _announce_joined(tx, announcer, batch, joined)


def reactivate_members(
    tx: Transaction, announcer: Announcer, batch: Batch, members: Sequence[tuple[int, str]], now: datetime
) -> None:
    """Members who had been removed and are there again, by id and data."""
    if not _shared_and_open(tx, batch):
        return
    lock_members(tx, [member for member, _data in members])
    back = creation.reactivate_members(tx, members, now)
    _announce_joined(tx, announcer, batch, [(member, key, generation) for member, _batch, key, generation in back])


def remove_members(
    tx: Transaction, announcer: Announcer, batch: Batch, members: Iterable[int], now: datetime, *, by: str
) -> None:
    """Members who are gone."""
    if not _shared_and_open(tx, batch):
        return
    wanted = sorted(set(members))
    lock_members(tx, wanted)
    gone = creation.remove_members(tx, wanted, now, by=by)
    announcer.send(
        tx,
        [
            MemberRemoved(
                runbook_name=batch.runbook_name,
                runbook_version=batch.runbook_version,
                batch_id=batch.id,
                batch_member_id=member,
                member_key=key,
                generation=generation,
            )
            for member, _batch, key, generation in gone
        ],
    )


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
    if change.any_to_run:
        # Who was through with the old version takes part in what the new one adds.
        tx.execute(member_store.REACTIVATE_COMPLETED, batch=batch_id)
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


def _shared_and_open(tx: Transaction, batch: Batch) -> bool:
    """Whether a batch is still under way, now that nobody can end it any more until the commit."""
    share_batches(tx, [batch.id])
    return batch_store.read(tx, [batch.id])[batch.id].status in OPEN_BATCH


def _announce_joined(
    tx: Transaction, announcer: Announcer, batch: Batch, joined: Sequence[tuple[int, str, int]]
) -> None:
    announcer.send(
        tx,
        [
            MemberAdded(
                runbook_name=batch.runbook_name,
                runbook_version=batch.runbook_version,
                batch_id=batch.id,
                batch_member_id=member,
                member_key=key,
                generation=generation,
            )
            for member, key, generation in joined
        ],
    )
