"""What an operator may do to a batch of any kind, and what has to hold for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches.refusals import NoSuchBatch, WrongState
from matoolkit.store import batches as batch_store
from matoolkit.store.locking import lock_batches
from matoolkit.store.states import OPEN_BATCH
from matoolkit.store.winding_up import cancel_batch

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.batches import Batch
    from matoolkit.store.database import Transaction


def locked(tx: Transaction, batch_id: int) -> Batch:
    """A batch that nobody else closes, cancels or advances until the commit."""
    lock_batches(tx, [batch_id])
    batch = batch_store.read(tx, [batch_id]).get(batch_id)
    if batch is None:
        raise NoSuchBatch(f"there is no batch {batch_id}")
    if batch.loaded_at is None:
        raise WrongState(f"batch {batch_id} is still being written")
    return batch


def require_open(batch: Batch) -> Batch:
    """Insist that a batch has not ended."""
    if batch.status not in OPEN_BATCH:
        raise WrongState(f"batch {batch.id} has ended: it is {batch.status}")
    return batch


def require_manual(batch: Batch) -> Batch:
    """Insist that a batch is moved by operators."""
    if not batch.is_manual:
        raise WrongState(f"batch {batch.id} is not a manual one: its members and its times come from the data source")
    return batch


def cancel(tx: Transaction, batch_id: int, now: datetime, *, by: str) -> Batch:
    """End a batch of either kind; jobs that run finish, and nothing more is sent. Gives it as it was."""
    batch = require_open(locked(tx, batch_id))
    cancel_batch(tx, batch_id, now, by=by)
    return batch
