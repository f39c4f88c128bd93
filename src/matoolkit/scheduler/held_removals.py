"""For operators: whose removal is held, and letting them go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matoolkit.batches import membership
from matoolkit.store import audit, holding
from matoolkit.store import batches as batch_store

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.batches.announcing import Announcer
    from matoolkit.store.database import Database, Transaction
    from matoolkit.store.holding import Held

_SIZE = 1_000


def held_removals(tx: Transaction, batch: int, *, after: int = 0, size: int = _SIZE) -> list[Held]:
    """Active members who are missing from their source and kept, by id."""
    return holding.held(tx, batch, after=after, size=size)


def release_held_removals(database: Database, announcer: Announcer, batch_id: int, *, by: str, now: datetime) -> int:
    """Let everybody go whose removal is held; gives how many went.

    Some at a time, each set with a row in the audit; who is there again meanwhile, or has ended, stays. Doing it twice
    does no more than doing it once.
    """
    released, after = 0, 0
    while True:
        with database.transaction() as tx:
            some = holding.held(tx, batch_id, after=after, size=_SIZE)
            if not some:
                return released
            batch = batch_store.read(tx, [batch_id])[batch_id]
            ids = [each.id for each in some]
            gone = membership.remove_members(tx, announcer, batch, ids, now, by=by, released=True)
            if gone:
                detail = {"members": gone}
                audit.record(
                    tx, now, by, "held-removals-released", batch.runbook_name, batch_id=batch_id, detail=detail
                )
        released += len(gone)
        after = some[-1].id
