"""Batches, members and phases as they are first written, and members as they come and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    String,
    bindparam,
    case,
    delete,
    exists,
    false,
    insert,
    null,
    or_,
    select,
    true,
    update,
)

from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.rows import Rows
from matoolkit.store.schema import batch_members, batches, phase_executions
from matoolkit.store.states import BatchStatus, MemberStatus, PhaseStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from matoolkit.store.database import Transaction
    from matoolkit.store.runbooks import PublishedRunbook

_m, _b, _p = batch_members.c, batches.c, phase_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)

# Written so that no index is thought to help: the rows are given.
_IS_HELD = case((_m.removal_held_at.is_(None), 0), else_=1) == 1
_UNLOADED = exists().where(_b.id == _m.batch_id, _b.loaded_at.is_(None))

FOUND = Rows(Column("member_key", String(512)), Column("member_key_folded", String(512)), Column("data_json", String))
FRESH = Rows(Column("id", BigInteger), Column("data_json", String))

ADD_MEMBERS = insert(batch_members).from_select(
    [
        "batch_id",
        "member_key",
        "member_key_folded",
        "data_json",
        "status",
        "added_at",
        "add_dispatched_at",
        "catch_up_due",
    ],
    select(
        bindparam("batch", type_=BigInteger),
        FOUND.c.member_key,
        FOUND.c.member_key_folded,
        FOUND.c.data_json,
        bindparam("member_status", type_=String),
        _now,
        bindparam("announced_at", type_=UtcDateTime),
        bindparam("late", type_=_m.catch_up_due.type),
    ).where(
        ~exists()
        .where(_m.batch_id == bindparam("batch", type_=BigInteger), _m.member_key_folded == FOUND.c.member_key_folded)
        .correlate(FOUND.table)
    ),
)
OF_KEYS = (
    select(_m.id, _m.member_key, _m.generation)
    .join(FOUND.table, FOUND.c.member_key_folded == _m.member_key_folded)
    .where(_m.batch_id == bindparam("batch"), _m.catch_up_due == true())
    .order_by(_m.id)
)
_REMOVE = (
    update(batch_members)
    .where(_m.id == IDS.c.id, checked(_m.status) == MemberStatus.ACTIVE)
    .values(
        status=MemberStatus.REMOVED,
        removed_at=_now,
        removed_by=bindparam("by"),
        remove_dispatched_at=_now,
        removal_due=True,
        removal_held_at=null(),
        catch_up_due=False,
    )
    .returning(_m.id, _m.batch_id, _m.member_key, _m.generation)
)
REMOVE = _REMOVE.where(or_(bindparam("released", type_=Boolean) == false(), _IS_HELD))
"""Where an operator released what was held: only who is held still, since others may be there again."""
REACTIVATE = (
    update(batch_members)
    .where(_m.id == FRESH.c.id, checked(_m.status) == MemberStatus.REMOVED, _m.removal_due == false())
    .values(
        status=MemberStatus.ACTIVE,
        generation=_m.generation + 1,
        data_json=FRESH.c.data_json,
        worker_data_json=null(),
        removed_at=null(),
        removed_by=null(),
        add_dispatched_at=_now,
        catch_up_due=True,
    )
    .returning(_m.id, _m.batch_id, _m.member_key, _m.generation)
)
REFRESH = (
    update(batch_members)
    .where(_m.id == FRESH.c.id, checked(_m.status) == MemberStatus.ACTIVE)
    .values(data_json=FRESH.c.data_json)
)
ADOPT = (
    update(batches).where(_b.id == bindparam("batch"), _b.loaded_at.is_(None)).values(runbook_id=bindparam("runbook"))
)
TAKE_BACK_MEMBERS = delete(batch_members).where(
    _m.batch_id == bindparam("batch"), _m.id.in_(select(IDS.c.id)), _UNLOADED
)
TAKE_BACK = delete(batches).where(_b.id == bindparam("batch"), _b.loaded_at.is_(None))
LOADED = update(batches).where(_b.id == bindparam("batch"), _b.loaded_at.is_(None)).values(loaded_at=_now)


def create_batch(
    tx: Transaction,
    runbook: PublishedRunbook,
    *,
    name_folded: str,
    start_time: datetime | None,
    now: datetime,
    is_manual: bool = False,
    created_by: str | None = None,
) -> int:
    """A batch without members and phases yet, hidden from everybody until it is `loaded`."""
    created = tx.connection.execute(
        insert(batches).returning(_b.id),
        {
            "runbook_id": runbook.id,
            "runbook_name_folded": name_folded,
            "batch_start_time": start_time,
            "status": BatchStatus.DETECTED,
            "detected_at": now,
            "is_manual": is_manual,
            "created_by": created_by,
        },
    )
    return int(created.scalar_one())


def add_members(
    tx: Transaction, batch: int, found: Sequence[tuple[str, str, str]], now: datetime, *, late: bool
) -> None:
    """Members by key, folded key and data, where they are not there yet; those who come late are to catch up."""
    if found:
        tx.with_rows(
            ADD_MEMBERS,
            FOUND,
            found,
            batch=batch,
            member_status=MemberStatus.ACTIVE,
            now=now,
            announced_at=now if late else None,
            late=late,
        )


def late_members(tx: Transaction, batch: int, found: Sequence[tuple[str, str, str]]) -> list[tuple[int, str, int]]:
    """Of these keys the members who are to catch up: id, key and generation."""
    if not found:
        return []
    return [(row[0], row[1], row[2]) for row in tx.with_rows(OF_KEYS, FOUND, found, batch=batch)]


def add_phases(tx: Transaction, batch: int, version: int, phases: Sequence[dict[str, Any]]) -> None:
    """Phases of a version, in the order of time."""
    if phases:
        tx.connection.execute(
            insert(phase_executions),
            [{"batch_id": batch, "runbook_version": version, "status": PhaseStatus.PENDING, **each} for each in phases],
        )


def loaded(tx: Transaction, batch: int, now: datetime) -> None:
    """Everything about a batch is written: from now on others see it."""
    tx.change(LOADED, 1, batch=batch, now=now)


def adopt(tx: Transaction, batch: int, runbook_id: int) -> None:
    """A batch that nobody has seen yet runs this version, whichever it was begun under."""
    tx.change(ADOPT, 1, batch=batch, runbook=runbook_id)


def take_back(tx: Transaction, batch: int, members: Iterable[int] | None = None) -> None:
    """Members of a batch that nobody has seen yet are no part of it after all; or nobody is, and there is no batch."""
    if members is None:
        tx.change(TAKE_BACK, 1, batch=batch)
    elif wanted := [(each,) for each in members]:
        tx.with_rows(TAKE_BACK_MEMBERS, IDS, wanted, batch=batch)


def remove_members(
    tx: Transaction, ids: Iterable[int], now: datetime, *, by: str, released: bool = False
) -> list[tuple[int, int, str, int]]:
    """Active members leave, or of those only who is held; who did: id, batch, key and generation."""
    wanted = [(each,) for each in sorted(set(ids))]
    if not wanted:
        return []
    return sorted(
        (row[0], row[1], row[2], row[3]) for row in tx.with_rows(REMOVE, IDS, wanted, now=now, by=by, released=released)
    )


def reactivate_members(
    tx: Transaction, found: Sequence[tuple[int, str]], now: datetime
) -> list[tuple[int, int, str, int]]:
    """Removed members come back with fresh data, once their leaving has been begun: a stay is ended before the next.

    Gives who did: id, batch, key and generation.
    """
    if not found:
        return []
    return sorted((row[0], row[1], row[2], row[3]) for row in tx.with_rows(REACTIVATE, FRESH, found, now=now))


def refresh_members(tx: Transaction, found: Sequence[tuple[int, str]]) -> None:
    """Members' data has changed."""
    if found:
        tx.with_rows(REFRESH, FRESH, found)
