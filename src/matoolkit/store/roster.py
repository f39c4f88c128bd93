"""Who is listed where: what a scheduler compares a source's answer with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import bindparam, false, select

from matoolkit.store.runbooks import folded
from matoolkit.store.schema import batch_members, batches
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.database import Transaction


class Listed(msgspec.Struct, frozen=True):
    """A member of a batch as the scheduler sees it."""

    id: int
    member_key_folded: str
    status: str
    data_json: str


_m, _b = batch_members.c, batches.c
BATCH_AT = select(_b.id).where(
    _b.runbook_name_folded == bindparam("name"),
    _b.batch_start_time == bindparam("start", type_=UtcDateTime),
    _b.is_manual == false(),
)
LISTED = (
    select(_m.id, _m.member_key_folded, _m.status, _m.data_json)
    .where(_m.batch_id == bindparam("batch"))
    .order_by(_m.id)
)


def batch_at(tx: Transaction, runbook_name: str, start: datetime) -> int | None:
    """The batch of a runbook name that starts at a time, ended or not, under whatever version."""
    found: int | None = tx.execute(BATCH_AT, name=folded(runbook_name), start=start).scalar()
    return found


def listed(tx: Transaction, batch: int) -> list[Listed]:
    """All members a batch ever had."""
    return [Listed(*row) for row in tx.execute(LISTED, batch=batch)]
