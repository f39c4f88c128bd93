"""Where members are: in which open batches of a runbook some keys take part, or are on their way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Column, String, and_, bindparam, exists, or_, select, true

from matoolkit.store.guards import checked
from matoolkit.store.rows import Rows
from matoolkit.store.schema import batch_members, batches, removal_executions, runbooks
from matoolkit.store.states import OPEN_BATCH, OPEN_EXECUTION, MemberStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.store.database import Transaction

_m, _b, _l = batch_members.c, batches.c, removal_executions.c
KEYS = Rows(Column("member_key_folded", String))
"""Folded keys handed to a statement."""

_LEAVING = and_(
    checked(_m.status) == MemberStatus.REMOVED,
    or_(
        checked(_m.removal_due) == true(),
        exists().where(_l.batch_member_id == _m.id, checked(_l.status).in_(OPEN_EXECUTION)),
    ),
)
TAKEN = (
    select(KEYS.c.member_key_folded, _b.id)
    .select_from(
        KEYS.table.join(batch_members, _m.member_key_folded == KEYS.c.member_key_folded).join(
            batches, _b.id == _m.batch_id
        )
    )
    .where(
        _b.runbook_name_folded == bindparam("name"),
        _b.id != bindparam("besides"),
        checked(_b.status).in_(OPEN_BATCH),
        or_(checked(_m.status) == MemberStatus.ACTIVE, _LEAVING),
    )
    .order_by(_b.id)
)
"""Keys that are somewhere already; whoever has left is there until the steps of leaving have ended."""
LOCK_RUNBOOK = (
    select(runbooks.c.id)
    .where(runbooks.c.id == bindparam("runbook"))
    .with_for_update(key_share=True)
    .with_hint(runbooks, "WITH (UPDLOCK, ROWLOCK)", "mssql")
)


def taken(tx: Transaction, runbook_name_folded: str, keys: Iterable[str], *, besides: int = 0) -> dict[str, int]:
    """Of these folded keys those who are in an open batch of the runbook, besides one, the first such batch."""
    wanted = [(each,) for each in keys]
    found: dict[str, int] = {}
    if wanted:
        for key, batch in tx.with_rows(TAKEN, KEYS, wanted, name=runbook_name_folded, besides=besides):
            found.setdefault(key, batch)
    return found


def lock_runbook(tx: Transaction, runbook: int) -> None:
    """Nobody else gives members a place under this version of a runbook until the commit."""
    if tx.dialect != "sqlite":
        tx.execute(LOCK_RUNBOOK, runbook=runbook).all()
