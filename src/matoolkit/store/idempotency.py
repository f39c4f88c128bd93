"""Answers kept for requests that said how to recognise their repetition."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from sqlalchemy import ColumnElement, Integer, bindparam, delete, insert, select, update

from matoolkit.store.schema import idempotent_answers
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from matoolkit.store.database import Transaction


class Kept(msgspec.Struct, frozen=True):
    """What was asked and answered under a key."""

    request_hash: str
    status_code: int
    body: str
    created_at: datetime


_i = idempotent_answers.c
_before: ColumnElement[datetime] = bindparam("before", type_=UtcDateTime)
READ = select(_i.request_hash, _i.status_code, _i.body, _i.created_at).where(
    _i.actor == bindparam("who"), _i.idempotency_key == bindparam("key")
)
FORGET_ONE = delete(idempotent_answers).where(
    _i.actor == bindparam("who"), _i.idempotency_key == bindparam("key"), _i.created_at < _before
)
ANSWER = (
    update(idempotent_answers)
    .where(_i.actor == bindparam("who"), _i.idempotency_key == bindparam("key"))
    .values(status_code=bindparam("status"), body=bindparam("answer"))
)
FORGET = delete(idempotent_answers).where(
    _i.id.in_(
        select(_i.id)
        .where(_i.created_at < _before)
        .order_by(_i.created_at)
        .limit(bindparam("size", type_=Integer))
        .offset(0)  # for Azure SQL: see `winding_up`
    )
)


def kept(tx: Transaction, actor: str, key: str) -> Kept | None:
    """What was answered before, if anything was."""
    row = tx.execute(READ, who=actor, key=key).first()
    return None if row is None else Kept(*row)


def claim(tx: Transaction, actor: str, key: str, request_hash: str, *, now: datetime, before: datetime) -> None:
    """Take a key for a request under way: of two at the same time one goes on, and the other conflicts with it."""
    tx.execute(FORGET_ONE, who=actor, key=key, before=before)
    tx.connection.execute(
        insert(idempotent_answers),
        {
            "actor": actor,
            "idempotency_key": key,
            "request_hash": request_hash,
            "status_code": 0,
            "body": "",
            "created_at": now,
        },
    )


def answer(tx: Transaction, actor: str, key: str, status: int, body: str) -> None:
    """Keep what was answered, in the transaction of what was done."""
    tx.change(ANSWER, 1, who=actor, key=key, status=status, answer=body)


def forget(tx: Transaction, before: datetime, size: int = 1000) -> int:
    """Drop answers that nobody will ask for any more; how many."""
    return tx.execute(FORGET, before=before, size=size).rowcount
