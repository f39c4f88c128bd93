"""Messages that could not be handled, kept with why, to be looked at and sent again."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import ColumnElement, Integer, bindparam, insert, select, update

from matoolkit.store.schema import dead_messages
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matoolkit.store.database import Transaction


class DeadMessage(msgspec.Struct, frozen=True):
    """A message that was put aside."""

    id: int
    at: datetime
    topic: str
    message_id: str
    message_type: str | None
    reason: str
    error: str | None
    properties_json: str
    body: str
    resubmitted_at: datetime | None
    resubmitted_by: str | None


_d = dead_messages.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_READ = select(
    _d.id,
    _d.at,
    _d.topic,
    _d.message_id,
    _d.message_type,
    _d.reason,
    _d.error,
    _d.properties_json,
    _d.body,
    _d.resubmitted_at,
    _d.resubmitted_by,
)
LIST = (
    _READ.where(_d.id < bindparam("before"))
    .order_by(_d.id.desc())
    .offset(bindparam("skip", type_=Integer))
    .limit(bindparam("size", type_=Integer))
)
ONE = _READ.where(_d.id == bindparam("message"))
RESUBMITTED = (
    update(dead_messages)
    .where(_d.id == bindparam("message"), _d.resubmitted_at.is_(None))
    .values(resubmitted_at=_now, resubmitted_by=bindparam("by"))
)


def page(tx: Transaction, *, before: int, skip: int, size: int) -> list[DeadMessage]:
    """Messages that were put aside, the newest first."""
    return [DeadMessage(*row) for row in tx.execute(LIST, before=before, skip=skip, size=size)]


def one(tx: Transaction, message: int) -> DeadMessage | None:
    """One of them."""
    row = tx.execute(ONE, message=message).first()
    return None if row is None else DeadMessage(*row)


def resubmitted(tx: Transaction, message: int, now: datetime, by: str) -> bool:
    """Note that it was sent again; False when it had been."""
    return tx.execute(RESUBMITTED, message=message, now=now, by=by).rowcount == 1


def park(
    tx: Transaction,
    *,
    topic: str,
    message_id: str,
    properties: Mapping[str, Any],
    properties_json: str,
    body: str,
    reason: str,
    error: str | None,
    now: datetime,
) -> None:
    """Put a message aside."""
    tx.connection.execute(
        insert(dead_messages),
        {
            "at": now,
            "topic": topic,
            "message_id": message_id,
            "message_type": properties.get("MessageType"),
            "reason": reason,
            "error": error,
            "properties_json": properties_json,
            "body": body,
        },
    )
