"""Members whose removal is held: missing from their source, and kept until an operator says that they may go."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import ColumnElement, Integer, bindparam, func, null, select, update

from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.schema import batch_members
from matoolkit.store.states import MemberStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matoolkit.store.database import Transaction


class Held(msgspec.Struct, frozen=True):
    """A member whose removal is held."""

    id: int
    member_key: str
    removal_held_at: datetime


_m = batch_members.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_HELD_AND_ACTIVE = (_m.removal_held_at.is_not(None), _m.status == MemberStatus.ACTIVE)

HOLD = (
    update(batch_members)
    .where(_m.id == IDS.c.id, checked(_m.status) == MemberStatus.ACTIVE)
    .values(removal_held_at=func.coalesce(_m.removal_held_at, _now))
)
UNHOLD = update(batch_members).where(_m.id == IDS.c.id).values(removal_held_at=null())
HELD = (
    select(_m.id, _m.member_key, _m.removal_held_at)
    .where(_m.batch_id == bindparam("batch"), _m.id > bindparam("after"), *_HELD_AND_ACTIVE)
    .order_by(_m.id)
    .limit(bindparam("size", type_=Integer))
)
COUNTS = (
    select(_m.batch_id, func.count())
    .join(IDS.table, IDS.c.id == _m.batch_id)
    .where(*_HELD_AND_ACTIVE)
    .group_by(_m.batch_id)
)


def hold(tx: Transaction, ids: Iterable[int], now: datetime) -> None:
    """Keep active members who would have been removed."""
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(HOLD, IDS, wanted, now=now)


def unhold(tx: Transaction, ids: Iterable[int]) -> None:
    """They are there again."""
    wanted = [(each,) for each in ids]
    if wanted:
        tx.with_rows(UNHOLD, IDS, wanted)


def held(tx: Transaction, batch: int, *, after: int, size: int) -> list[Held]:
    """The next held members of a batch, by id."""
    return [Held(*row) for row in tx.execute(HELD, batch=batch, after=after, size=size)]


def counts(tx: Transaction, batches: Iterable[int]) -> dict[int, int]:
    """How many removals each batch holds; those that hold none are left out."""
    wanted = [(each,) for each in sorted(set(batches))]
    return {row[0]: row[1] for row in tx.with_rows(COUNTS, IDS, wanted)} if wanted else {}
