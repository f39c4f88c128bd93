"""What was done, as people look it up: by batch, by who did it, by time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import ColumnElement, Integer, String, bindparam, or_, select

from matoolkit.store.schema import audit
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction


class Entry(msgspec.Struct, frozen=True):
    """Something that somebody did."""

    id: int
    at: datetime
    actor: str
    action: str
    target: str
    batch_id: int | None
    detail_json: str | None


_a = audit.c
_since: ColumnElement[datetime] = bindparam("since", type_=UtcDateTime)
_actor: ColumnElement[str] = bindparam("actor", type_=String)
_LIST = (
    select(_a.id, _a.at, _a.actor, _a.action, _a.target, _a.batch_id, _a.detail_json)
    .where(
        _a.id < bindparam("before"),
        or_(_actor.is_(None), _a.actor == _actor),
        or_(_since.is_(None), _a.at >= _since),
    )
    .order_by(_a.id.desc())
    .offset(bindparam("skip", type_=Integer))
    .limit(bindparam("size", type_=Integer))
)
LIST = _LIST
LIST_OF_BATCH = _LIST.where(_a.batch_id == bindparam("batch"))


def entries(
    tx: Transaction,
    *,
    batch_id: int | None,
    actor: str | None,
    since: datetime | None,
    before: int,
    skip: int,
    size: int,
) -> list[Entry]:
    """What was done, the newest first, from the entry before `before`."""
    given: dict[str, Any] = {"actor": actor, "since": since, "before": before, "skip": skip, "size": size}
    if batch_id is not None:
        return [Entry(*row) for row in tx.execute(LIST_OF_BATCH, batch=batch_id, **given)]
    return [Entry(*row) for row in tx.execute(LIST, **given)]
