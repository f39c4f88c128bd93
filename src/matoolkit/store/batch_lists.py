"""Batches as people look at them: lists with filters and pages, and one of them with what it is made of."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import Boolean, ColumnElement, Integer, String, bindparam, cast, func, or_, select

from matoolkit.store.locking import IDS
from matoolkit.store.schema import batch_members, batches, phase_executions, runbooks, step_executions
from matoolkit.store.states import OPEN_BATCH, MemberStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matoolkit.store.database import Transaction


class BatchItem(msgspec.Struct, frozen=True):
    """A batch in a list."""

    id: int
    runbook_name: str
    runbook_version: int
    batch_start_time: datetime | None
    status: str
    is_manual: bool
    created_by: str | None
    current_phase: str | None
    detected_at: datetime
    loaded_at: datetime | None
    init_dispatched_at: datetime | None
    started_at: datetime | None
    completed_at: datetime | None
    cancelled_by: str | None
    rerunning_init_version: int | None


class PhaseItem(msgspec.Struct, frozen=True):
    """A phase of a batch in a list."""

    id: int
    phase_name: str
    offset_minutes: int
    due_at: datetime | None
    status: str
    skip_reason: str | None
    runbook_version: int
    dispatched_at: datetime | None
    completed_at: datetime | None
    expanded_at: datetime | None


_b, _m, _p, _s = batches.c, batch_members.c, phase_executions.c, step_executions.c
_start: Any = _b.batch_start_time
COLUMNS = (
    _b.id,
    runbooks.c.name,
    runbooks.c.version,
    func.coalesce(_start, _b.started_at, type_=UtcDateTime),
    _b.status,
    _b.is_manual,
    _b.created_by,
    _b.current_phase,
    _b.detected_at,
    _b.loaded_at,
    _b.init_dispatched_at,
    _b.started_at,
    _b.completed_at,
    _b.cancelled_by,
    _b.rerunning_init_version,
)
_READ = select(*COLUMNS).join(runbooks, runbooks.c.id == _b.runbook_id)
_named: ColumnElement[str] = bindparam("named", type_=String)
_state: ColumnElement[str] = bindparam("state", type_=String)
# PostgreSQL asks what type a parameter is that is only compared with NULL.
_manual: ColumnElement[bool] = cast(bindparam("manual", type_=Boolean), Boolean)
_size, _skip = bindparam("size", type_=Integer), bindparam("skip", type_=Integer)
_FILTER = (
    or_(_named.is_(None), _b.runbook_name_folded == _named),
    # Written so that no index on states is thought of: batches are few, and the newest are wanted.
    or_(_state.is_(None), func.coalesce(_b.status, "") == _state),
    or_(_manual.is_(None), _b.is_manual == _manual),
)
ONE = _READ.where(_b.id == bindparam("batch"))
LIST = _READ.where(*_FILTER, _b.id < bindparam("before")).order_by(_b.id.desc()).offset(_skip).limit(_size)
STILL_OPEN = _READ.where(_b.status.in_(OPEN_BATCH)).order_by(_b.id).limit(_size)
COUNT = select(func.count()).select_from(batches).where(*_FILTER)
MEMBERS_BY_STATUS = select(
    IDS.c.id,
    *(
        select(func.count())
        .select_from(batch_members)
        .where(_m.batch_id == IDS.c.id, _m.status == state)
        .correlate(IDS.table)
        .scalar_subquery()
        .label(str(state))
        for state in MemberStatus
    ),
)
"""A look into the index for each batch and state: batches are many, and most of a database is in one of them."""
HELD = select(func.count()).where(
    _m.batch_id == bindparam("batch"), _m.removal_held_at.is_not(None), _m.status == MemberStatus.ACTIVE
)
PHASES = (
    select(
        _p.id,
        _p.phase_name,
        _p.offset_minutes,
        _p.due_at,
        _p.status,
        _p.skip_reason,
        _p.runbook_version,
        _p.dispatched_at,
        _p.completed_at,
        _p.expanded_at,
    )
    .where(_p.batch_id == bindparam("batch"))
    .order_by(_p.id)
)
STEPS_BY_STATUS = (
    select(_s.phase_execution_id, _s.status, func.count())
    .where(_s.batch_id == bindparam("batch"))
    .group_by(_s.phase_execution_id, _s.status)
)


def one(tx: Transaction, batch: int) -> BatchItem | None:
    """One batch, if there is such a one."""
    row = tx.execute(ONE, batch=batch).first()
    return None if row is None else BatchItem(*row)


def page(
    tx: Transaction, *, runbook: str | None, status: str | None, manual: bool | None, before: int, skip: int, size: int
) -> tuple[list[BatchItem], int]:
    """Batches, the newest first, and how many there are on all pages; the runbook by its folded name."""
    given: dict[str, Any] = {"named": runbook, "state": status, "manual": manual}
    total = int(tx.execute(COUNT, **given).scalar_one())
    return [BatchItem(*row) for row in tx.execute(LIST, **given, before=before, skip=skip, size=size)], total


def still_open(tx: Transaction, size: int) -> list[BatchItem]:
    """Batches that have not ended, the oldest first."""
    return [BatchItem(*row) for row in tx.execute(STILL_OPEN, size=size)]


def members_by_status(tx: Transaction, ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """How many members of each batch are in which state."""
    rows = tx.with_rows(MEMBERS_BY_STATUS, IDS, [(each,) for each in ids]) if ids else ()
    return {
        row[0]: {str(state): number for state, number in zip(MemberStatus, row[1:], strict=True) if number}
        for row in rows
    }


def member_count(by_status: dict[str, int]) -> int:
    """How many belong to it: everybody but those who left."""
    return sum(number for status, number in by_status.items() if status != MemberStatus.REMOVED)


def held_removals(tx: Transaction, batch: int) -> int:
    """How many are missing from the source and kept until an operator lets them go."""
    return int(tx.execute(HELD, batch=batch).scalar_one())


def phases(tx: Transaction, batch: int) -> list[PhaseItem]:
    """A batch's phases of all versions, in the order of their ids, which is that of time."""
    return [PhaseItem(*row) for row in tx.execute(PHASES, batch=batch)]


def steps_by_status(tx: Transaction, batch: int) -> dict[int, dict[str, int]]:
    """How many steps of each phase are in which state."""
    found: dict[int, dict[str, int]] = {}
    for phase, status, number in tx.execute(STEPS_BY_STATUS, batch=batch):
        found.setdefault(phase, {})[status] = number
    return found
