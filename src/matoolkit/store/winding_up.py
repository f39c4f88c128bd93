"""The end of what is in a batch that ended before its time, in chunks that hold nobody up for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Integer, bindparam, case, false, null, select, true, update

from matoolkit.store import batches as batch_store
from matoolkit.store import inits as init_store
from matoolkit.store import phases as phase_store
from matoolkit.store.schema import batch_members, batches, phase_executions, step_executions
from matoolkit.store.states import OPEN_EXECUTION, BatchStatus, ExecutionStatus, MemberStatus, PhaseStatus
from matoolkit.store.types import UtcDateTime

if TYPE_CHECKING:
    from datetime import datetime

    from matoolkit.store.database import Transaction

_b, _p, _m, _s = batches.c, phase_executions.c, batch_members.c, step_executions.c
_now: ColumnElement[datetime] = bindparam("now", type_=UtcDateTime)
_size = bindparam("size", type_=Integer)
_FIRST = 0
"""Without an offset, SQLAlchemy leaves a subquery's order out for Azure SQL, which then refuses the limit."""

WINDING_UP = select(_b.id, _b.status, _b.cancelled_by).where(_b.winding_up == true()).order_by(_b.id)
WOUND_UP = update(batches).where(_b.id == bindparam("batch"), _b.winding_up == true()).values(winding_up=false())
CANCEL_SOME_STEPS = (
    update(step_executions)
    .where(
        _s.id.in_(
            select(_s.id)
            .join(phase_executions, _p.id == _s.phase_execution_id)
            .where(_p.batch_id == bindparam("batch"), _s.status.in_(OPEN_EXECUTION))
            .order_by(_s.id)
            .limit(_size)
            .offset(_FIRST)
        )
    )
    .values(status=ExecutionStatus.CANCELLED, completed_at=_now, poll_check_at=null(), retry_after=null())
)
END_SOME_MEMBERS = (
    update(batch_members)
    .where(
        _m.id.in_(
            select(_m.id)
            .where(_m.batch_id == bindparam("batch"), _m.status == MemberStatus.ACTIVE)
            .order_by(_m.id)
            .limit(_size)
            .offset(_FIRST)
        )
    )
    .values(
        status=bindparam("outcome"),
        removed_at=case((bindparam("outcome") == MemberStatus.REMOVED, _now), else_=_m.removed_at),
        removed_by=bindparam("by"),
        failed_at=case((bindparam("outcome") == MemberStatus.FAILED, _now), else_=_m.failed_at),
        catch_up_due=false(),
    )
)


def cancel_batch(tx: Transaction, batch: int, now: datetime, *, by: str, size: int = 1000) -> bool:
    """An operator ends a batch: nothing more is sent for it; rollbacks and removals that have begun go on."""
    if not batch_store.break_off(tx, batch, BatchStatus.CANCELLED, now, by):
        return False
    phase_store.end_open(tx, batch, PhaseStatus.CANCELLED, None, now)
    init_store.cancel_all(tx, batch, now)
    wind_up(tx, batch, BatchStatus.CANCELLED, by, now=now, size=size)
    return True


def wind_up(tx: Transaction, batch: int, status: str, by: str | None, *, now: datetime, size: int) -> None:
    """End some steps and members of an ended batch; the batch is wound up when none are left."""
    steps = tx.execute(CANCEL_SOME_STEPS, batch=batch, now=now, size=size).rowcount
    outcome = MemberStatus.REMOVED if status == BatchStatus.CANCELLED else MemberStatus.FAILED
    members = tx.execute(END_SOME_MEMBERS, batch=batch, now=now, size=size, outcome=outcome, by=by).rowcount
    if steps < size and members < size:
        tx.execute(WOUND_UP, batch=batch)


def winding_up(tx: Transaction) -> list[tuple[int, str, str | None]]:
    """Batches that ended before their time and are not wound up: id, status and who cancelled them."""
    return [(row[0], row[1], row[2]) for row in tx.execute(WINDING_UP)]
