"""Members who join a batch under way, come back to it, or leave it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.messages import MemberAdded, MemberRemoved
from matoolkit.store import batches as batch_store
from matoolkit.store import creation
from matoolkit.store.locking import lock_members, share_batches
from matoolkit.store.runbooks import folded
from matoolkit.store.states import OPEN_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction

Found = tuple[str, str]
"""A member as a source gives it: key and data."""


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
) -> set[int]:
    """Members who had been removed and are there again, by id and data; the ids of those who could come back."""
    if not _shared_and_open(tx, batch):
        return set()
    lock_members(tx, [member for member, _data in members])
    back = creation.reactivate_members(tx, members, now)
    _announce_joined(tx, announcer, batch, [(member, key, generation) for member, _batch, key, generation in back])
    return {member for member, *_ in back}


def remove_members(
    tx: Transaction,
    announcer: Announcer,
    batch: Batch,
    members: Iterable[int],
    now: datetime,
    *,
    by: str,
    released: bool = False,
) -> list[int]:
    """Members who are gone, or of those only whose removal was held; gives who was removed thereby."""
    if not _shared_and_open(tx, batch):
        return []
    wanted = sorted(set(members))
    lock_members(tx, wanted)
    gone = creation.remove_members(tx, wanted, now, by=by, released=released)
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
    return [member for member, *_rest in gone]


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
