"""What should have moved and has not: found by reconciliation, a bounded part at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Integer, and_, bindparam, exists, or_, select, true

from matoolkit.store.executions import EXECUTIONS, Execution
from matoolkit.store.schema import batch_members, batches, step_executions
from matoolkit.store.states import BatchStatus, ExecutionStatus, MemberStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.messages import Kind
    from matoolkit.store.database import Transaction

_m, _s = batch_members.c, step_executions.c
_before = bindparam("before", type_=UtcDateTime)
_size = bindparam("size", type_=Integer)
_WINDOW = (
    select(_m.id, _m.batch_id)
    .where(_m.status == MemberStatus.ACTIVE, _m.id > bindparam("after"))
    .order_by(_m.id)
    .limit(_size)
    .offset(0)  # for Azure SQL: see `winding_up`
    .subquery("looked_at")
)
_READY = exists().where(
    _s.batch_member_id == _WINDOW.c.id,
    _s.status == ExecutionStatus.PENDING,
    or_(_s.retry_after.is_(None), _s.retry_after < _before),
)
_OTHER = step_executions.alias("other")
_OCCUPIED = exists().where(
    _OTHER.c.batch_member_id == _WINDOW.c.id,
    or_(
        _OTHER.c.job_out == true(),
        _OTHER.c.status == ExecutionStatus.POLLING,
        and_(_OTHER.c.status == ExecutionStatus.PENDING, _OTHER.c.retry_after >= _before),
    ),
)
IDLE = select(_WINDOW.c.id, _WINDOW.c.batch_id).where(_READY, ~_OCCUPIED).order_by(_WINDOW.c.id)
LAST_LOOKED_AT = select(_WINDOW.c.id).order_by(_WINDOW.c.id.desc()).limit(1)
LOST_JOBS: dict[Kind, Any] = {
    kind: executions.selected.where(
        executions.table.c.job_out == true(), executions.table.c.job_not_after < bindparam("before", type_=UtcDateTime)
    )
    .order_by(executions.table.c.job_not_after, executions.table.c.id)
    .limit(_size)
    for kind, executions in EXECUTIONS.items()
}
WAITING_FOR_INIT = (
    select(batches.c.id)
    .where(
        batches.c.loaded_at.is_not(None),
        or_(
            batches.c.status == BatchStatus.INIT_DISPATCHED,
            and_(batches.c.status == BatchStatus.ACTIVE, batches.c.rerunning_init_version.is_not(None)),
        ),
    )
    .order_by(batches.c.id)
)


def idle_members(tx: Transaction, after: int, before: datetime, size: int) -> tuple[list[tuple[int, int]], int]:
    """Active members with work and nothing under way, with their batches; and how far the look got, 0 at the end."""
    found = [(row[0], row[1]) for row in tx.execute(IDLE, after=after, before=before, size=size)]
    last = tx.execute(LAST_LOOKED_AT, after=after, size=size).scalar()
    return found, int(last or 0)


def lost_jobs(tx: Transaction, kind: Kind, before: datetime, size: int) -> list[Execution]:
    """Executions whose job should have been run or given back long ago."""
    return [Execution(kind, *row) for row in tx.execute(LOST_JOBS[kind], before=before, size=size)]


def waiting_for_init(tx: Transaction) -> list[int]:
    """Batches whose init is under way."""
    return [row[0] for row in tx.execute(WAITING_FOR_INIT)]
