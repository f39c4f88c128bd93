"""Who is listed where: what a scheduler compares a source's answer with."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Column, String, bindparam, case, false, select

from matoolkit.store.batches import READ_ALL, Batch
from matoolkit.store.guards import checked
from matoolkit.store.locking import IDS
from matoolkit.store.rows import Rows
from matoolkit.store.runbooks import folded
from matoolkit.store.schema import batch_members, batches, init_executions
from matoolkit.store.states import OPEN_BATCH, BatchStatus, ExecutionStatus, MemberStatus
from matoolkit.store.types import UtcDateTime, whether

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from matoolkit.store.database import Transaction

Listed = tuple[int, str, str, str | None, bool]
"""A member of a batch: id, folded key, status, data while active, and whether its removal is held."""


class Elsewhere(NamedTuple):
    """Somebody of a key, in whatever batch of a runbook name."""

    member_key_folded: str
    id: int
    batch_id: int
    is_active: bool
    removal_due: bool


_m, _b, _i = batch_members.c, batches.c, init_executions.c
KEYS = Rows(Column("member_key_folded", String(512)))
STARTS = Rows(Column("start", UtcDateTime))

OPEN_OF_NAME = READ_ALL.where(_b.status.in_(OPEN_BATCH), _b.runbook_name_folded == bindparam("named")).order_by(_b.id)
BATCHES_AT = (
    select(_b.id, _b.batch_start_time, whether(_b.status.in_(OPEN_BATCH)).label("is_open"))
    .join(STARTS.table, STARTS.c.start == _b.batch_start_time)
    .where(_b.runbook_name_folded == bindparam("named"), _b.is_manual == false())
    .order_by(_b.id)
)
LISTED = (
    select(
        _m.id,
        _m.member_key_folded,
        _m.status,
        # What is not compared need not travel.
        case((_m.status == MemberStatus.ACTIVE, _m.data_json)).label("data_json"),
        whether(_m.removal_held_at.is_not(None)).label("held"),
    )
    .where(_m.batch_id == bindparam("batch"))
    .order_by(_m.id)
)
KEYS_OF = select(_m.member_key_folded).where(_m.batch_id == bindparam("batch"))
ELSEWHERE = (
    select(
        _m.member_key_folded,
        _m.id,
        _m.batch_id,
        whether(_m.status == MemberStatus.ACTIVE).label("is_active"),
        _m.removal_due,
    )
    .select_from(batch_members)
    .join(KEYS.table, KEYS.c.member_key_folded == _m.member_key_folded)
    .join(batches, _b.id == _m.batch_id)
    .where(
        _b.runbook_name_folded == bindparam("named"),
        checked(_m.status).in_((MemberStatus.ACTIVE, MemberStatus.REMOVED, MemberStatus.FAILED)),
    )
    .order_by(_m.id)
)
FAILED_INIT_RERUNS = (
    select(_i.batch_id, _i.step_name, _i.error_message)
    .join(IDS.table, IDS.c.id == _i.batch_id)
    .join(batches, _b.id == _i.batch_id)
    .where(
        _b.status == BatchStatus.ACTIVE,
        _i.runbook_version == bindparam("runbook_version"),
        _i.status.in_((ExecutionStatus.FAILED, ExecutionStatus.POLL_TIMEOUT)),
    )
    .order_by(_i.id)
)


def open_of_name(tx: Transaction, runbook_name: str) -> list[Batch]:
    """The batches of a runbook name that have not ended, under whatever version."""
    return [Batch(*row) for row in tx.execute(OPEN_OF_NAME, named=folded(runbook_name))]


def batches_at(tx: Transaction, runbook_name: str, starts: Iterable[datetime]) -> dict[datetime, tuple[int, bool]]:
    """Of these start times those that have a batch, ended or not, under whatever version: its id, and if it is open."""
    rows = tx.with_rows(BATCHES_AT, STARTS, [(start,) for start in starts], named=folded(runbook_name))
    return {row[1]: (row[0], bool(row[2])) for row in rows}


def listed(tx: Transaction, batch: int) -> list[Listed]:
    """All members a batch ever had."""
    return tx.execute(LISTED, batch=batch).all()


def keys_of(tx: Transaction, batch: int) -> set[str]:
    """The folded keys of all members a batch ever had."""
    return set(tx.execute(KEYS_OF, batch=batch).scalars())


def elsewhere(tx: Transaction, runbook_name: str, keys: Iterable[str]) -> list[Elsewhere]:
    """Whoever of these keys is active in a batch of a runbook name, was removed from one, or failed there."""
    rows = tx.with_rows(ELSEWHERE, KEYS, [(key,) for key in keys], named=folded(runbook_name))
    return [Elsewhere(*row) for row in rows]


def failed_init_reruns(tx: Transaction, ids: Iterable[int], version: int) -> list[tuple[int, str, str]]:
    """Of these batches those that are active although their init failed under a version: with the step, and why."""
    wanted = [(each,) for each in ids]
    if not wanted:
        return []
    rows = tx.with_rows(FAILED_INIT_RERUNS, IDS, wanted, runbook_version=version)
    return [(row[0], row[1], row[2]) for row in rows]
