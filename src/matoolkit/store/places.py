"""Places in the batches of a runbook: who is to have them is decided by one at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import bindparam, select

from matoolkit.store.roster import KEYS
from matoolkit.store.runbooks import folded
from matoolkit.store.schema import batch_members, runbooks

if TYPE_CHECKING:
    from collections.abc import Collection

    from matoolkit.store.database import Transaction

_r, _m = runbooks.c, batch_members.c
HOLD = (
    select(_r.id)
    .where(_r.name_folded == bindparam("named"), _r.version == 1)
    .with_for_update(key_share=True)
    .with_hint(runbooks, "WITH (UPDLOCK, ROWLOCK, FORCESEEK)", "mssql")
)
"""The first version stands for the name: it is always there."""
_OTHER = batch_members.alias("other")
OF_KEYS = (
    select(KEYS.c.member_key_folded, _m.id, _m.status)
    .select_from(KEYS.table)
    .join(
        batch_members,
        _m.id
        == select(_OTHER.c.id)
        .where(_OTHER.c.batch_id == bindparam("batch"), _OTHER.c.member_key_folded == KEYS.c.member_key_folded)
        .correlate(KEYS.table)
        .scalar_subquery(),
    )
)
"""A look into the unique index for each key, whatever the planner believes of the batch."""


def hold(tx: Transaction, runbook_name: str) -> None:
    """Nobody else decides who joins a batch of this runbook until the commit."""
    if tx.dialect != "sqlite":
        tx.execute(HOLD, named=folded(runbook_name)).all()


def of_keys(tx: Transaction, batch: int, keys: Collection[str]) -> dict[str, tuple[int, str]]:
    """Of these folded keys those that a batch has or had, each with the member's id and state."""
    rows = tx.with_rows(OF_KEYS, KEYS, [(each,) for each in keys], batch=batch) if keys else ()
    return {key: (member, status) for key, member, status in rows}
